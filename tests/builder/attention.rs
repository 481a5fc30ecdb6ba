//! Attention of several heads, against float64.

use std::ops::Range;

use framebatch::Attention;
use framebatch::device::Engine;
use pollster::block_on;

use crate::engines::both;
use crate::samples::Samples;

#[test]
fn attention_of_several_heads() {
    let (heads, size, queries, keys) = (3_usize, 5_usize, 40_usize, 37_usize);
    let width = heads * size;
    let mut samples = Samples(13);
    let [q, k, v] = [queries, keys, keys].map(|rows| samples.units(rows * width));
    let dims = |rows: usize| [rows as u32, width as u32];
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload_shaped(&q, &dims(queries)).unwrap();
        let y = batch.upload_shaped(&k, &dims(keys)).unwrap();
        let z = batch.upload_shaped(&v, &dims(keys)).unwrap();
        let usual = batch.attention(x, y, z, Attention::heads(3)).unwrap();
        let causal = Attention {
            scale: Some(0.25),
            is_causal: true,
            ..Attention::heads(3)
        };
        let causal = batch.attention(y, y, z, causal).unwrap();
        let near = Attention {
            window: Some(4),
            ..Attention::heads(3)
        };
        let near = batch.attention(y, y, z, near).unwrap();
        let far = Attention {
            window: Some(u32::MAX),
            ..Attention::heads(3)
        };
        let far = batch.attention(y, y, z, far).unwrap();
        assert_eq!(batch.shape(usual).unwrap(), dims(queries));
        block_on(batch.execute()).unwrap();
        if gpu.info().engine == Engine::Gpu {
            assert_eq!(gpu.stats().device.dispatches, 4);
        }
        let usual = block_on(batch.read(usual)).unwrap();
        let causal = block_on(batch.read(causal)).unwrap();
        let near = block_on(batch.read(near)).unwrap();
        let far = block_on(batch.read(far)).unwrap();
        let root = 1.0 / (size as f64).sqrt();
        let all = |_| 0..keys;
        let behind = |row| 0..row + 1;
        let around = |row: usize| row.saturating_sub(4)..keys.min(row + 5);
        let cases: [(_, _, _, &dyn Fn(usize) -> Range<usize>); 4] = [
            (usual, &q, root, &all),
            (causal, &k, 0.25, &behind),
            (near, &k, root, &around),
            (far, &k, root, &all),
        ];
        for (results, q, scale, seen) in cases {
            for (i, got) in results.iter().enumerate() {
                let (row, column) = (i / width, i % width);
                let head = column / size * size..column / size * size + size;
                let weights: Vec<(usize, f64)> = seen(row)
                    .map(|key| {
                        let products = head.clone().map(|at| {
                            f64::from(q[row * width + at]) * f64::from(k[key * width + at])
                        });
                        (key, (products.sum::<f64>() * scale).exp())
                    })
                    .collect();
                let weighed = weights.iter();
                let sum: f64 = weighed
                    .map(|(key, weight)| weight * f64::from(v[key * width + column]))
                    .sum();
                let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
                let off = (f64::from(*got) - sum / all).abs();
                assert!(off < 2e-6, "element {i} is off by {off:e}");
            }
        }
    }
}

/// Scores below all that is usual: of keys that a query sees, and of those that it does not.
#[test]
fn very_low_scores_have_no_weight_and_hide_nothing() {
    let infinite = [&[f32::NEG_INFINITY; 64][..], &[0.0]].concat();
    let overflowing = [&[-3e20; 64][..], &[0.0]].concat();
    let counted: Vec<f32> = (0..65).map(|i| i as f32).collect();
    let near = Attention {
        window: Some(0),
        ..Attention::heads(1)
    };
    let all = Attention::heads(1);
    // The queries, the keys, the values, and what is seen of these.
    let cases: [(&str, [&[f32]; 4], Attention); 4] = [
        (
            "outside of a window",
            [&[1.0, 1.0], &[-2e30, 0.0], &[1.0, 2.0], &[1.0, 2.0]],
            near,
        ),
        (
            "and within",
            [&[1.0, 1.0], &[-2e30, -3e38], &[1.0, 2.0], &[1.0, 2.0]],
            near,
        ),
        ("a block", [&[1.0], &infinite, &counted, &[64.0]], all),
        (
            "beyond floats",
            [&[3e20], &overflowing, &counted, &[64.0]],
            all,
        ),
    ];
    for gpu in both() {
        for (what, [q, k, v, want], attention) in &cases {
            let mut batch = gpu.batch();
            let [q, k, v] = [q, k, v].map(|data| {
                let dims = [data.len() as u32, 1];
                batch.upload_shaped(data.to_vec(), &dims).unwrap()
            });
            let seen = batch.attention(q, k, v, *attention).unwrap();
            block_on(batch.execute()).unwrap();
            let got = block_on(batch.read(seen)).unwrap();
            assert_eq!(got, *want, "{what} on {:?}", gpu.info().engine);
        }
    }
}
