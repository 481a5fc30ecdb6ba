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
fn the_processor_gets_short_tensors_until_it_has_enough() {
    let mut table = TensorTable::default();
    let most = MIRRORED_IN_ALL / MIRRORED;
    let tensors: Vec<u32> = (0..=most).map(|_| table.hold()).collect();
    assert!(!table.mirror(tensors[0], MIRRORED + 1), "it is long");
    for tensor in &tensors[..most] {
        assert!(table.mirror(*tensor, MIRRORED));
        assert!(table.mirror(*tensor, MIRRORED), "the same words again");
    }
    assert!(!table.mirror(tensors[most], 1), "there is no room");
    table.unmirror(tensors[0]);
    assert!(table.mirror(tensors[most], MIRRORED));
}

#[test]
fn a_tensor_is_where_it_was_put_last() {
    let mut table = TensorTable::default();
    let tensor = table.hold();
    let state = |table: &TensorTable| {
        let (is_filled, is_mirrored) = (table.is_filled(tensor), table.is_mirrored(tensor));
        (is_filled, is_mirrored, table.deferred(tensor))
    };
    table.mirror(tensor, 8);
    assert_eq!(state(&table), (false, false, None), "not filled yet");
    table.fill(tensor, None);
    assert_eq!(state(&table), (true, true, None), "on both");
    table.defer(tensor, 8);
    assert_eq!(
        state(&table),
        (true, true, Some(8)),
        "on the processor alone"
    );
    let coming: Vec<_> = table.coming().collect();
    assert_eq!(coming, [(tensor, None, 8)]);
    table.fill(tensor, Some(Packing::F16));
    assert_eq!(state(&table), (true, true, None), "brought to the device");
    table.unmirror(tensor);
    assert_eq!(state(&table), (true, false, None), "a call writes it there");
    table.lose();
    assert_eq!(state(&table), (false, false, None), "the device is gone");
}
