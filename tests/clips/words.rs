//! The words of clips, which TypeScript writes too: `words.txt` is what both are
//! held against.

use framebatch::clips::{Easing, Interpolation, Jump, Kind, Track, encode};

/// The same clips as in `pkg-template/test/clips.test.mjs`.
#[test]
fn clips_have_the_words_of_both_languages() {
    let times = [0.0, 0.5, 1.5];
    let plain = Track {
        times: &times,
        values: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        kind: Kind::Vector,
        interpolation: Interpolation::Linear,
        easing: Easing::Linear,
    };
    let turn = Track {
        times: &times[..2],
        values: &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        kind: Kind::Quaternion,
        easing: Easing::CubicBezier([0.25, 0.1, 0.25, 1.0]),
        ..plain
    };
    let weights: Vec<f32> = (0..45_u8).map(f32::from).collect();
    let spline = Track {
        values: &weights,
        interpolation: Interpolation::CubicSpline,
        easing: Easing::Steps(4, Jump::None),
        ..plain
    };
    let step = Track {
        interpolation: Interpolation::Step,
        ..plain
    };
    let clips = [
        encode(&[plain], None),
        encode(&[turn, spline, step], Some(2.0)),
    ];
    let lines: Vec<String> = clips
        .into_iter()
        .map(|clip| {
            let words = clip.unwrap().words.into_iter();
            words
                .map(|word| word.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let expected: Vec<&str> = include_str!("words.txt").lines().collect();
    assert_eq!(lines, expected);
}

const GOOD: Track<'_> = Track {
    times: &[0.0, 1.0],
    values: &[0.0, 1.0],
    kind: Kind::Vector,
    interpolation: Interpolation::Linear,
    easing: Easing::Linear,
};

/// Tracks, and what is said of them as the second of a clip.
fn wrong() -> [(Track<'static>, &'static str); 10] {
    let good = GOOD;
    [
        (
            Track { times: &[], ..good },
            "tracks[1].times is empty; give at least 1 key",
        ),
        (
            Track {
                times: &[0.0, f32::NAN],
                ..good
            },
            "tracks[1].times[1] is NaN; give a finite number",
        ),
        (
            Track {
                times: &[1.0, 0.0],
                ..good
            },
            "tracks[1].times[1] is before the one in front of it; sort the keys",
        ),
        (
            Track {
                values: &[0.0, 1.0, 2.0],
                ..good
            },
            "tracks[1].values has 3 floats, which is not 1 value for each of 2 keys",
        ),
        (
            Track {
                interpolation: Interpolation::CubicSpline,
                ..good
            },
            "tracks[1].values has 2 floats, which is not 3 values for each of 2 keys",
        ),
        (
            Track {
                kind: Kind::Quaternion,
                ..good
            },
            "tracks[1] has 1 floats a value, but a quaternion has 4",
        ),
        (
            Track {
                interpolation: Interpolation::Step,
                easing: Easing::Steps(2, Jump::End),
                ..good
            },
            "tracks[1].easing has no effect on steps from key to key; leave it out",
        ),
        (
            Track {
                easing: Easing::CubicBezier([1.5, 0.0, 0.0, 0.0]),
                ..good
            },
            "tracks[1].easing: x1 and x2 must be within 0 and 1",
        ),
        (
            Track {
                easing: Easing::CubicBezier([0.5, f32::INFINITY, 0.0, 0.0]),
                ..good
            },
            "tracks[1].easing: give finite numbers",
        ),
        (
            Track {
                easing: Easing::Steps(1, Jump::None),
                ..good
            },
            "tracks[1].easing: steps need at least 1 jump",
        ),
    ]
}

#[test]
fn wrong_tracks_are_refused_by_name() {
    for (track, problem) in wrong() {
        let error = encode(&[GOOD, track], None).unwrap_err();
        assert_eq!(error.to_string(), format!("clip: {problem}"));
    }
    let nothing = encode(&[], None).unwrap_err();
    assert_eq!(nothing.to_string(), "clip: a clip has at least 1 track");
    let backwards = encode(&[GOOD], Some(-1.0)).unwrap_err();
    assert_eq!(
        backwards.to_string(),
        "clip: duration must be a number from 0, got -1"
    );
}
