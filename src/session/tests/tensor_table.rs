//! The table of tensors, without a session.

use super::*;

#[test]
fn a_number_is_given_again_when_nobody_needs_its_tensor() {
    let mut table = TensorTable::default();
    let [first, second] = [(); 2].map(|()| table.hold());
    table.read(first);
    table.read(first);
    assert!(!table.release(first), "two calls still read it");
    assert!(!table.release(first), "it was given up before");
    assert!(!table.is_held(first) && table.is_read(first));
    assert!(
        !table.done(first) && table.done(first),
        "with its last reader"
    );
    assert_eq!(table.hold(), first);
    assert!(table.is_held(first) && !table.is_read(first));
    assert!(table.release(second), "nobody reads it");
}

#[test]
fn the_host_copies_short_tensors_until_it_has_enough() {
    let mut table = TensorTable::default();
    let most = MOST_COPIED_IN_ALL / MOST_COPIED;
    let tensors: Vec<u32> = (0..=most).map(|_| table.hold()).collect();
    assert!(!table.may_copy(tensors[0], MOST_COPIED + 1), "it is long");
    for tensor in &tensors[..most] {
        assert!(table.may_copy(*tensor, MOST_COPIED));
        table.copy(*tensor, MOST_COPIED);
        assert!(table.may_copy(*tensor, MOST_COPIED), "the same words again");
    }
    assert!(!table.may_copy(tensors[most], 1), "there is no room");
    table.drop_copy(tensors[0]);
    assert!(table.may_copy(tensors[most], MOST_COPIED));
    table.copy(tensors[most], MOST_COPIED);
    assert!(!table.may_copy(tensors[0], 1), "another one took its place");
    table.lose();
    assert!(!table.may_copy(tensors[0], 1), "the host keeps its copies");
    assert!(table.release(tensors[most]) && table.may_copy(tensors[0], 1));
}

#[test]
fn a_tensor_is_where_it_was_put_last() {
    let mut table = TensorTable::default();
    let tensor = table.hold();
    assert_eq!(table.residency(tensor), Residency::Nowhere { kept: 0 });
    table.fill(tensor, None);
    assert_eq!(table.residency(tensor), Residency::Device);
    table.copy(tensor, 8);
    assert_eq!(table.residency(tensor), Residency::Both { words: 8 });
    table.defer(tensor, 8, Some(Packing::F16));
    let on_host = |is_readable| Residency::Host {
        words: 8,
        is_readable,
    };
    assert_eq!(table.residency(tensor), on_host(true));
    assert_eq!(table.deferred(tensor), Some(8));
    let coming: Vec<_> = table.coming().collect();
    let packed = Coming {
        tensor,
        packing: Some(Packing::F16),
        words: 4,
    };
    assert_eq!(coming, [packed], "two in a word");
    table.bring(tensor);
    assert_eq!(table.residency(tensor), Residency::Both { words: 8 });
    table.drop_copy(tensor);
    assert_eq!(table.residency(tensor), Residency::Device, "a call writes");
    table.defer(tensor, 8, None);
    table.drop_copy(tensor);
    assert_eq!(table.residency(tensor), on_host(false));
    table.bring(tensor);
    assert_eq!(table.residency(tensor), Residency::Device);
    table.copy(tensor, 8);
    table.lose();
    assert_eq!(table.residency(tensor), Residency::Nowhere { kept: 8 });
    assert!(!table.is_filled(tensor) && !table.has_copy(tensor));
}

#[test]
fn a_long_tensor_on_the_host_alone_is_for_the_device() {
    let mut table = TensorTable::default();
    let tensor = table.hold();
    table.defer(tensor, MOST_COPIED + 1, None);
    assert!(table.is_filled(tensor) && !table.has_copy(tensor));
    assert_eq!(table.deferred(tensor), Some(MOST_COPIED + 1));
    table.bring(tensor);
    assert_eq!(table.residency(tensor), Residency::Device);
}

#[test]
fn shards_are_known_until_the_tensor_is_filled_anew() {
    let mut table = TensorTable::default();
    let [tensor, first, second] = [(); 3].map(|()| table.hold());
    table.shard(ShardedTensor {
        tensor,
        words: 4,
        shards: vec![first, second],
    });
    assert_eq!(table.residency(tensor), Residency::Sharded);
    assert_eq!(table.sharded().len(), 1);
    table.lose();
    assert!(!table.is_filled(tensor));
    assert_eq!(
        table.unshard(tensor),
        [first, second],
        "they are still held"
    );
    assert!(table.sharded().is_empty() && table.unshard(tensor).is_empty());
    table.fill(tensor, None);
    assert_eq!(table.residency(tensor), Residency::Device);
}
