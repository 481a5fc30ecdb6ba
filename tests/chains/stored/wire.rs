//! Stores on the wire: what is encoded is decoded, and words that make no sense are refused.

use framebatch::graph::NodeId;
use framebatch::graph::chain::{Axes, Chain, Home, Reduction, Store, StoreExtent};
use framebatch::graph::shape::Shape;
use framebatch::tensor::{DType, Packing};

const NEGATE: framebatch::graph::UnaryFn = framebatch::graph::UnaryFn::Neg;

fn input(chain: &mut Chain, dims: &[u32], home: Home) -> NodeId {
    let shape = Shape::new(dims).unwrap();
    chain.input(shape, DType::F32, home).unwrap()
}

/// A store of all of a target.
fn whole(target: NodeId) -> Store {
    Store {
        target,
        extent: StoreExtent::Whole,
    }
}

/// A store of a part of a target.
fn part(target: NodeId) -> Store {
    Store {
        target,
        extent: StoreExtent::Part,
    }
}

/// In place, by a swap, to a tensor that nothing reads, and a part.
fn chains() -> Vec<Chain> {
    let mut all = Vec::new();
    let mut chain = Chain::default();
    let (a, b) = (
        input(&mut chain, &[2, 3], Home::Resident),
        input(&mut chain, &[2, 3], Home::Resident),
    );
    let negative = chain.unary(NEGATE, a).unwrap();
    let mut in_place = chain.clone();
    in_place.store(negative, whole(a)).unwrap();
    let mut swap = chain.clone();
    swap.store(a, whole(b)).unwrap();
    swap.store(b, whole(a)).unwrap();
    chain.store(negative, whole(b)).unwrap();
    all.extend([chain, in_place, swap]);

    let mut chain = Chain::default();
    let floats = input(&mut chain, &[4], Home::Call);
    let target = input(&mut chain, &[2, 3], Home::Resident);
    chain.store(floats, part(target)).unwrap();
    all.push(chain);
    all
}

#[test]
fn stores_survive_the_wire() {
    let chains = chains();
    for (at, chain) in chains.iter().enumerate() {
        let decoded = Chain::decode(&chain.encode()).unwrap();
        assert_eq!(decoded.stores(), chain.stores(), "{at}");
        assert_eq!(&decoded, chain, "{at}");
        let same = chains
            .iter()
            .filter(|other| other.encode() == chain.encode());
        assert_eq!(
            same.count(),
            1,
            "{at}: different chains have different words"
        );
    }
}

#[test]
fn words_of_stores_that_make_no_sense_are_refused() {
    for (at, chain) in chains().iter().enumerate() {
        let words = chain.encode();
        let last = words.len() - 1;
        let result = words[last] & 0x7fff;
        let target = words[last] >> 16;
        let part = words[last] & 0x8000;
        let wrong = [
            ("a result that is no node", 0x7fff | part | target << 16),
            ("a target that is no node", result | part | 0xffff << 16),
            ("a part of nothing", result | 0x8000),
            (
                "a target that is its own part",
                (target - 1) | 0x8000 | target << 16,
            ),
        ];
        for (name, word) in wrong {
            let mut broken = words.clone();
            broken[last] = word;
            assert!(Chain::decode(&broken).is_err(), "{at}: {name}");
        }
        // Each target once, and all results stored or none.
        for word in [words[last], result] {
            let mut longer = words.clone();
            longer[1] += 1;
            longer.push(word);
            assert!(Chain::decode(&longer).is_err(), "{at}: one more, {word:#x}");
        }
        // Any word whatever is refused or stands for another chain, and nothing panics.
        for place in 0..words.len() {
            for change in [1, 2, 0x100, 0x8000, 0x1_0000, 0x2_0000, u32::MAX] {
                let mut broken = words.clone();
                broken[place] ^= change;
                if let Ok(other) = Chain::decode(&broken) {
                    assert_eq!(Chain::decode(&other.encode()).as_ref(), Ok(&other));
                }
            }
        }
    }
}

#[test]
fn a_target_is_a_resident_tensor_of_the_results_shape_and_type() {
    let mut chain = Chain::default();
    let x = input(&mut chain, &[4], Home::Call);
    let negative = chain.unary(NEGATE, x).unwrap();
    let place = chain.reduce(Reduction::Argmax, x, Axes::of(&[0])).unwrap();
    let tensor = input(&mut chain, &[4], Home::Resident);
    let longer = input(&mut chain, &[5], Home::Resident);
    let single = input(&mut chain, &[], Home::Resident);
    let packed = input(&mut chain, &[4], Home::Packed(Packing::F16));
    let cases = [
        ("what comes with the call", negative, whole(x)),
        ("an operation", x, whole(negative)),
        ("a packed tensor", negative, whole(packed)),
        ("another shape", negative, whole(longer)),
        ("another type", place, whole(single)),
        ("a part of a shorter tensor", longer, part(tensor)),
        ("a part of itself", tensor, part(tensor)),
    ];
    for (name, value, store) in cases {
        assert!(chain.clone().store(value, store).is_err(), "{name}");
    }
    let mut beside = chain.clone();
    beside.store(negative, part(longer)).unwrap();
    assert!(
        beside.store(negative, part(tensor)).is_err(),
        "a part is alone"
    );
    assert!(
        beside.store(negative, whole(tensor)).is_err(),
        "a part is alone"
    );
    let mut read = chain.clone();
    read.output(negative).unwrap();
    assert!(read.store(negative, whole(tensor)).is_err(), "all or none");
    chain.store(negative, whole(tensor)).unwrap();
    assert!(chain.output(negative).is_err(), "all or none");
    assert!(chain.store(x, whole(tensor)).is_err(), "written once");
}
