//! What configurations say of rotations, and of layers that attend to neighbors.

use super::*;

#[test]
fn parameters_of_rotations_leave_to_other_fields_what_they_do_not_say() {
    for (x, theta, scale) in [
        (r#""rope_parameters": {"rope_type": "default"}"#, 1e6, 1.0),
        (r#""rope_parameters": {"rope_theta": 5000}"#, 5e3, 1.0),
        (
            r#""rope_parameters": {"type": "linear", "factor": 8}"#,
            1e6,
            0.125,
        ),
        (
            r#""rope_parameters": {"rope_type": "linear", "factor": 8}"#,
            1e6,
            0.125,
        ),
    ] {
        let rotation = turned(QWEN, x).unwrap().rotation.unwrap();
        assert_eq!((rotation.theta, rotation.scale), (theta, scale), "{x}");
    }
}

#[test]
fn layers_that_attend_to_neighbors_are_named_or_counted() {
    let all_but_every_third = [false, true, true, false];
    for (x, expected, thetas, reach) in [
        ("\"x\": 0", all_but_every_third, [160_000.0, 10_000.0], 64),
        (
            r#""global_attn_every_n_layers": 2, "local_attention": 10,
                "global_rope_theta": 5000.0, "local_rope_theta": 3000.0"#,
            [false, true, false, true],
            [5000.0, 3000.0],
            5,
        ),
        (
            r#""layer_types": ["sliding_attention", "full_attention", "full_attention",
                "sliding_attention"], "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 7000},
                "sliding_attention": {"rope_type": "default"}}"#,
            [true, false, false, true],
            [7000.0, 10_000.0],
            64,
        ),
    ] {
        let config = turned(MODERN, x).unwrap();
        let near = config.near.as_ref().unwrap();
        assert_eq!(near.layers, expected, "{x}");
        assert_eq!(near.reach, reach, "{x}");
        let found = [config.rotation.unwrap().theta, near.rotation.theta];
        assert_eq!(found, thetas, "{x}");
        assert!(!config.has_position_table && config.types == 0);
    }
}
