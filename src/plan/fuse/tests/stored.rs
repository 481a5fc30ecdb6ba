//! Programs whose results stay on the device.

use super::*;
use crate::graph::chain::{Store, StoreExtent};
use crate::plan::fuse::stored_programs;
use crate::program::Load;

/// What is stored, and in which of the inputs.
type Stored = Vec<(NodeId, NodeId)>;

/// The direct program and the one by scratch, of a chain over resident tensors of these shapes.
fn programs(
    shapes: &[&[u32]],
    extent: StoreExtent,
    record: fn(&mut Chain, &[NodeId]) -> Result<Stored, Error>,
) -> (Option<String>, String) {
    let mut chain = Chain::default();
    let inputs = shapes.iter().map(|dims| {
        let shape = Shape::new(dims)?;
        chain.input(shape, DType::F32, Home::Resident)
    });
    let inputs: Nodes = inputs.collect::<Result<_, _>>().expect("good shapes");
    for (value, target) in record(&mut chain, &inputs).expect("a good chain") {
        let store = Store { target, extent };
        chain.store(value, store).expect("a good target");
    }
    let (program, sizes) = fuse(&chain);
    let programs = stored_programs(&chain, program, sizes);
    let check = |(program, sizes): &(Program, Sizes)| {
        assert_eq!(program.stages.len(), sizes.stages.len());
        assert_eq!(program.buffers as usize, sizes.buffers.len());
        assert!(program.outputs.is_empty());
        let mut loads = program.stages.iter().flat_map(|stage| &stage.loads);
        let in_place = if loads.any(Load::is_in_place) {
            " in place"
        } else {
            ""
        };
        program.to_string() + in_place
    };
    (
        programs.direct.as_ref().map(check),
        check(&programs.by_scratch),
    )
}

type RecordStored = fn(&mut Chain, &[NodeId]) -> Result<Stored, Error>;
/// Name, shapes, record, the direct program, the one by scratch.
type Case<'a> = (
    &'a str,
    &'a [&'a [u32]],
    RecordStored,
    Option<&'a str>,
    &'a str,
);

#[test]
fn results_are_written_where_they_stay() {
    let square: &[u32] = &[8, 8];
    let cases: [Case<'_>; 8] = [
        (
            "another tensor",
            &[square, square],
            |g, x| Ok(vec![(g.unary(UnaryFn::Relu, x[0])?, x[1])]),
            Some("dispatch map(relu(tensor0)) tensor0 -> tensor1"),
            "dispatch map(relu(tensor0)) tensor0 -> b0\ndispatch map(b0) b0 -> tensor1",
        ),
        (
            "in place",
            &[square, square],
            |g, x| Ok(vec![(g.binary(BinaryFn::Add, x[0], x[1])?, x[0])]),
            Some("dispatch map(tensor0 + tensor1) tensor0, tensor1 -> tensor0 in place"),
            "dispatch map(tensor0 + tensor1) tensor0, tensor1 -> b0\ndispatch map(b0) b0 -> tensor0",
        ),
        (
            "other places of the target",
            &[square],
            |g, x| Ok(vec![(g.transpose(x[0], &[])?, x[0])]),
            None,
            "dispatch map(tensor0~) tensor0 -> b0\ndispatch map(b0) b0 -> tensor0",
        ),
        (
            "own and other places of the target",
            &[square],
            |g, x| {
                let turned = g.transpose(x[0], &[])?;
                Ok(vec![(g.binary(BinaryFn::Add, x[0], turned)?, x[0])])
            },
            None,
            "dispatch map(tensor0 + tensor0~) tensor0 -> b0\ndispatch map(b0) b0 -> tensor0",
        ),
        (
            "rows of the target",
            &[square],
            |g, x| Ok(vec![(g.norm(Norm::Softmax, x[0], -1, None)?, x[0])]),
            None,
            "dispatch map(b0) b0 -> tensor0",
        ),
        (
            "two tensors that change places",
            &[square, square],
            |_, x| Ok(vec![(x[0], x[1]), (x[1], x[0])]),
            None,
            "dispatch map(tensor0) tensor0 -> b0\ndispatch map(tensor1) tensor1 -> b1\n\
             dispatch map(b0) b0 -> tensor1\ndispatch map(b1) b1 -> tensor0",
        ),
        (
            "one result in two tensors",
            &[square, square, square],
            |g, x| {
                let y = g.unary(UnaryFn::Exp, x[0])?;
                Ok(vec![(y, x[1]), (y, x[2])])
            },
            None,
            "dispatch map(exp(tensor0)) tensor0 -> b0\n\
             dispatch map(b0) b0 -> tensor1\ndispatch map(b0) b0 -> tensor2",
        ),
        (
            "parts of a concat",
            &[&[4, 8], &[4, 8], square],
            |g, x| Ok(vec![(g.concat(&[x[0], x[1]], 0)?, x[2])]),
            Some(
                "dispatch map(tensor0) as a part tensor0 -> tensor2\n\
                 dispatch map(tensor1) as a part tensor1 -> tensor2",
            ),
            "dispatch map(tensor0) as a part tensor0 -> b0\n\
             dispatch map(tensor1) as a part tensor1 -> b0\ndispatch map(b0) b0 -> tensor2",
        ),
    ];
    for (name, shapes, record, direct, by_scratch) in cases {
        let (own, copied) = programs(shapes, StoreExtent::Whole, record);
        assert_eq!(own.as_deref(), direct, "{name}");
        assert!(copied.ends_with(by_scratch), "{name}: {copied}");
    }
}

#[test]
fn a_part_is_stored_element_by_element() {
    let (direct, by_scratch) = programs(&[&[5], &[64]], StoreExtent::Part, |_, x| {
        Ok(vec![(x[0], x[1])])
    });
    let own = "dispatch map(tensor0) as a part tensor0 -> tensor1";
    assert_eq!(direct.as_deref(), Some(own));
    assert_eq!(
        by_scratch,
        "dispatch map(tensor0) tensor0 -> b0\ndispatch map(b0) as a part b0 -> tensor1"
    );
}

#[test]
fn targets_that_do_not_suit_are_refused() {
    let shape = |dims: &[u32]| Shape::new(dims).expect("a good shape");
    let mut chain = Chain::default();
    let input = |chain: &mut Chain, dims: &[u32], dtype, home| {
        chain.input(shape(dims), dtype, home).expect("room")
    };
    let x = input(&mut chain, &[8], DType::F32, Home::Resident);
    let y = chain.unary(UnaryFn::Relu, x).expect("one operand");
    let carried = input(&mut chain, &[8], DType::F32, Home::Call);
    let packed = input(&mut chain, &[8], DType::F32, Home::Packed(Packing::F16));
    let indexes = input(&mut chain, &[8], DType::U32, Home::Resident);
    let short = input(&mut chain, &[7], DType::F32, Home::Resident);
    let target = input(&mut chain, &[8], DType::F32, Home::Resident);
    let whole = |target| Store {
        target,
        extent: StoreExtent::Whole,
    };
    for unfit in [carried, packed, indexes, short, y] {
        let refused = chain.store(y, whole(unfit));
        assert!(matches!(refused, Err(Error::InvalidInput(_))), "{unfit:?}");
    }
    let part = |target| Store {
        target,
        extent: StoreExtent::Part,
    };
    for unfit in [short, x] {
        assert!(chain.store(y, part(unfit)).is_err(), "{unfit:?}");
    }
    chain.store(y, whole(target)).expect("a good target");
    assert!(chain.store(y, whole(target)).is_err(), "written twice");
    assert!(chain.output(y).is_err(), "read and stored");
    assert!(chain.store(y, part(x)).is_err(), "a part beside a whole");
    let mut read = Chain::default();
    let x = input(&mut read, &[8], DType::F32, Home::Resident);
    read.output(x).expect("a node");
    assert!(read.store(x, whole(x)).is_err(), "stored beside one read");
}
