use super::*;

/// What a device takes for a slice.
#[derive(Clone, Copy)]
struct Pace {
    /// Milliseconds that a slice takes whatever its size.
    trip: f64,
    /// Milliseconds more for each unit.
    rate: f64,
}

/// How long the last of many slices takes, the trip included.
fn settled(slices: &mut Slices, length: Length, Pace { trip, rate }: Pace) -> f64 {
    let mut ms = 0.0;
    for _ in 0..40 {
        let units = slices.most(length).max(1.0); // A call at least.
        ms = trip + units * rate;
        slices.took(units, ms);
    }
    ms
}

#[test]
fn slices_come_to_take_what_they_aim_at() {
    for trip in [0.0, 0.3, 1.5] {
        for rate in [0.000_1, 0.01, 1.0] {
            let mut slices = Slices::default();
            assert!(
                slices.most(Length::Long) <= 0.0,
                "the first slice is a call"
            );
            for (length, aim) in [
                (Length::Short, 4.0),
                (Length::Long, 12.5),
                (Length::Short, 4.0),
            ] {
                let took = settled(&mut slices, length, Pace { trip, rate });
                // Of the smallest slice all counts as the trip, up to a millisecond.
                let most = trip + aim + 1.0 + rate;
                assert!(
                    took <= most && took >= aim * 0.95,
                    "{took} of {aim}, trip {trip}"
                );
            }
        }
    }
}

#[test]
fn a_device_that_slows_down_gets_smaller_slices() {
    let mut slices = Slices::default();
    settled(
        &mut slices,
        Length::Short,
        Pace {
            trip: 0.5,
            rate: 0.01,
        },
    );
    let took = settled(
        &mut slices,
        Length::Short,
        Pace {
            trip: 0.5,
            rate: 1.0,
        },
    );
    assert!(took <= 0.5 + 4.0 + 1.0 + 1.0, "{took}");
}

#[test]
fn a_slice_grows_by_steps() {
    let mut slices = Slices::default();
    slices.took(10.0, 0.0); // A clock too coarse to see anything.
    assert!((slices.most(Length::Short) - 40.0).abs() < 1e-9);
    slices.took(40.0, 0.0);
    assert!((slices.most(Length::Short) - 160.0).abs() < 1e-9);
    slices.took(0.0, 1000.0); // It is not known what was computed.
    assert!((slices.most(Length::Short) - 160.0).abs() < 1e-9);
}
