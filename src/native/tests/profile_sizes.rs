//! Which size is best, and how a table reads.

use super::*;
use crate::native::profile::Spread;

fn spread(ms: f64) -> Spread {
    Spread {
        mean: ms,
        min: ms,
        max: ms,
        sd: 0.25,
        p50: ms,
        p95: ms,
    }
}

/// Sizes and how many milliseconds each takes.
fn told(times: &[(usize, f64)]) -> SizesProfile {
    let sized = |(size, ms): &(usize, f64)| SizedProfile {
        size: *size,
        profile: Profile {
            iterations: 1,
            run_ms: spread(*ms),
            batches: 1.0,
            calls: 1.0,
            items: 1.0,
            pieces: 1.0,
            bytes_up: 1000.0,
            bytes_down: 0.0,
            flops: Some(750e6),
            kernel_bytes: Some(12.5e6),
            encode_ms: spread(0.0),
            transfer_ms: spread(0.81),
            gpu_ms: Some(spread(0.5)),
            read_ms: spread(0.0),
        },
    };
    SizesProfile {
        sizes: times.iter().map(sized).collect(),
    }
}

/// Sizes, milliseconds of each, and the best size.
type Case = (&'static [(usize, f64)], Option<usize>);

#[test]
fn the_best_size_is_the_smallest_that_is_good_enough() {
    let cases: [Case; 7] = [
        (&[], None),
        (&[(1, 1.0), (10, 2.0), (100, 10.0), (1000, 99.0)], Some(100)),
        (
            &[(1, 1.0), (10, 2.0), (100, 10.0), (1000, 90.0)],
            Some(1000),
        ),
        (&[(4, 4.0), (1, 1.0), (2, 2.0)], Some(1)),
        (&[(8, 1.0)], Some(8)),
        (&[(1, 0.0), (2, 0.0)], None),
        (&[(1, 0.0), (2, 1.0)], Some(2)),
    ];
    for (times, expected) in cases {
        assert_eq!(told(times).best(), expected, "{times:?}");
    }
}

#[test]
fn a_table_has_a_line_for_each_size() {
    let expected = "\
size      ms    sd  batches  kernels ms  per second   GB/s up  GB/s down  GB/s kernels  GFLOP/s
   1  0.1235  0.25        1         0.5        8100  0.001235          -            25     1500
1000      20  0.25        1         0.5       50000  0.001235          -            25     1500";
    assert_eq!(told(&[(1, 0.123_456), (1000, 20.0)]).to_string(), expected);
    let texts = [0.0, 1.0, 999.96, 1000.4, 0.000_123_4].map(|x| text(Some(x)));
    assert_eq!(texts, ["0", "1", "1000", "1000", "0.0001234"]);
}
