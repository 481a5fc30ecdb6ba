//! Every sampler against the oracle, and how calls of many clips are sent.

use framebatch::clips::{Easing, Interpolation, Kind, Wrap};
use framebatch::{Clip, Gpu};

use crate::oracle::{Track, folded};
use crate::samples::Samples;
use crate::{BOUND, engines};

fn clip_of(gpu: &Gpu, tracks: &[Track]) -> Clip {
    let tracks: Vec<_> = tracks.iter().map(Track::borrow).collect();
    gpu.clip(&tracks, None).unwrap()
}

/// Compares a row with what the oracle knows of it; how many floats it knows.
#[track_caller]
fn check_row(gpu: &Gpu, got: &[f32], tracks: &[Track], t: f64) -> usize {
    let (mut at, mut known) = (0, 0);
    for track in tracks {
        let floats = &got[at..at + track.width];
        at += track.width;
        let Some(want) = track.at(t) else { continue };
        known += want.len();
        for (got, want) in floats.iter().zip(&want) {
            let error = (f64::from(*got) - want).abs();
            assert!(
                error <= BOUND,
                "{:?}: {floats:?} at {t} should be {want:?}, off by {error:e}: {track:?}",
                gpu.info().engine
            );
        }
    }
    assert_eq!(at, got.len());
    known
}

#[test]
fn ten_thousand_random_tracks() {
    for gpu in engines::both_manual() {
        let mut samples = Samples(11);
        let (mut floats, mut known) = (0, 0);
        for _ in 0..10 {
            let asked: Vec<_> = (0..1000)
                .map(|_| {
                    let track = samples.track();
                    let times = samples.times(&track.times, 7);
                    (clip_of(&gpu, std::slice::from_ref(&track)), track, times)
                })
                .collect();
            let calls: Vec<_> = asked
                .iter()
                .map(|(clip, _, times)| clip.sample(times, Wrap::Clamp))
                .collect();
            gpu.flush();
            for (call, (_, track, times)) in calls.into_iter().zip(&asked) {
                let got = call.wait().unwrap();
                assert_eq!(got.len(), times.len() * track.width);
                floats += got.len();
                for (row, t) in got.chunks(track.width).zip(times) {
                    let track = std::slice::from_ref(track);
                    known += check_row(&gpu, row, track, f64::from(*t));
                }
            }
        }
        assert!(
            known * 100 > floats * 97,
            "the oracle knows {known} of {floats}"
        );
    }
}

#[test]
fn clips_of_many_tracks_wrap_and_merge() {
    for gpu in engines::both_manual() {
        let mut samples = Samples(12);
        for wrap in [Wrap::Clamp, Wrap::Loop, Wrap::PingPong] {
            let asked: Vec<_> = (0..50)
                .map(|_| {
                    let count = 1 + samples.below(9);
                    let tracks: Vec<Track> = (0..count).map(|_| samples.track()).collect();
                    let clip = clip_of(&gpu, &tracks);
                    // Times at the seam are left out: both ends are as near.
                    let times: Vec<f32> = (0..20)
                        .map(|_| (samples.unit() * 6.0 - 3.0) * clip.duration())
                        .filter(|t| {
                            let turns = f64::from(*t) / f64::from(clip.duration().max(1e-9));
                            (turns - turns.round()).abs() > 1e-4
                        })
                        .collect();
                    (clip, tracks, times)
                })
                .collect();
            let calls: Vec<_> = asked
                .iter()
                .map(|(clip, _, times)| clip.sample(times, wrap))
                .collect();
            gpu.flush();
            for (call, (clip, tracks, times)) in calls.into_iter().zip(&asked) {
                let got = call.wait().unwrap();
                for (row, t) in got.chunks(clip.width() as usize).zip(times) {
                    let t = folded(f64::from(*t), f64::from(clip.duration()), wrap);
                    // Steps and jumps are as near on either side.
                    let is_near_key = tracks.iter().any(|track| {
                        track
                            .times
                            .iter()
                            .any(|key| (f64::from(*key) - t).abs() < 1e-4)
                    });
                    if !is_near_key {
                        check_row_within(&gpu, row, tracks, t);
                    }
                }
            }
        }
    }
}

/// A folded time is off by 2^-22 of itself, and slopes reach 10 a second.
#[track_caller]
fn check_row_within(gpu: &Gpu, got: &[f32], tracks: &[Track], t: f64) {
    let (mut at, slack) = (0, 1e-3);
    for track in tracks {
        let floats = &got[at..at + track.width];
        at += track.width;
        let near = [t - 1e-5, t, t + 1e-5].map(|t| track.at(t));
        let [Some(before), Some(want), Some(after)] = near else {
            continue;
        };
        for k in 0..want.len() {
            let slope = (after[k] - before[k]).abs();
            if slope > slack {
                continue; // A jump.
            }
            let error = (f64::from(floats[k]) - want[k]).abs();
            assert!(
                error <= BOUND + slope,
                "{:?}: {floats:?} at {t} should be {want:?}, off by {error:e}: {track:?}",
                gpu.info().engine
            );
        }
    }
}

#[test]
fn ends_single_keys_and_equal_keys_are_exact() {
    let track = |times: &[f32], values: &[f32]| Track {
        times: times.to_vec(),
        values: values.to_vec(),
        width: values.len() / times.len(),
        kind: Kind::Vector,
        interpolation: Interpolation::Linear,
        easing: Easing::Linear,
    };
    let cases = [
        (
            track(&[0.0], &[7.0]),
            vec![(-1.0, 7.0), (0.0, 7.0), (9.0, 7.0)],
        ),
        (
            track(&[1.0, 3.0], &[2.0, 4.0]),
            vec![(0.0, 2.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0), (8.0, 4.0)],
        ),
        // From equal keys on the last of them counts, and up to them the first.
        (
            track(&[0.0, 1.0, 1.0, 1.0, 2.0], &[0.0, 8.0, 50.0, 2.0, 4.0]),
            vec![(0.5, 4.0), (1.0, 2.0), (1.5, 3.0), (2.0, 4.0)],
        ),
        (
            track(&[1.0, 1.0], &[5.0, 6.0]),
            vec![(0.0, 5.0), (1.0, 6.0), (2.0, 6.0)],
        ),
    ];
    for gpu in engines::both() {
        for (track, cases) in &cases {
            let clip = clip_of(&gpu, std::slice::from_ref(track));
            let times: Vec<f32> = cases.iter().map(|(t, _)| *t).collect();
            let want: Vec<f32> = cases.iter().map(|(_, value)| *value).collect();
            assert_eq!(clip.sample(&times, Wrap::Clamp).wait().unwrap(), want);
        }
    }
}

#[test]
fn a_thousand_components_are_one_submission() {
    let gpu = engines::open(framebatch::EngineChoice::Gpu, engines::manual());
    let mut samples = Samples(13);
    let clips: Vec<Clip> = (0..1000)
        .map(|_| clip_of(&gpu, &[samples.track()]))
        .collect();
    let ask = || {
        let calls: Vec<_> = clips
            .iter()
            .map(|clip| clip.sample(&[0.5], Wrap::Loop))
            .collect();
        gpu.flush();
        let lengths = calls.into_iter().map(|call| call.wait().unwrap().len());
        lengths.sum::<usize>()
    };
    ask();
    let before = gpu.stats().device;
    let floats: usize = clips.iter().map(|clip| clip.width() as usize).sum();
    assert_eq!(ask(), floats);
    let after = gpu.stats().device;
    let spent = [
        after.submits - before.submits,
        after.readbacks - before.readbacks,
        after.dispatches - before.dispatches,
        after.uploads - before.uploads,
    ];
    assert_eq!(spent, [1, 1, 1, 1]);
}

#[test]
fn neighbors_change_no_bit() {
    for gpu in engines::both_manual() {
        let mut samples = Samples(14);
        let asked: Vec<_> = (0..60)
            .map(|_| {
                let tracks: Vec<Track> =
                    (0..1 + samples.below(4)).map(|_| samples.track()).collect();
                let count = 1 + samples.below(70);
                let times = samples.times(&tracks[0].times, count);
                (clip_of(&gpu, &tracks), times)
            })
            .collect();
        let merged: Vec<_> = asked
            .iter()
            .map(|(clip, times)| clip.sample(times, Wrap::PingPong))
            .collect();
        gpu.flush();
        for (call, (clip, times)) in merged.into_iter().zip(&asked) {
            let beside = call.wait().unwrap();
            let alone = clip.sample(times, Wrap::PingPong);
            gpu.flush();
            let bits = |floats: Vec<f32>| floats.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(beside), bits(alone.wait().unwrap()));
        }
    }
}

#[test]
fn many_rows_are_cut_into_chunks() {
    for gpu in engines::both() {
        let mut samples = Samples(15);
        let tracks: Vec<Track> = [Kind::Vector, Kind::Quaternion, Kind::Vector]
            .map(|kind| samples.track_of(kind, if kind == Kind::Vector { 3 } else { 4 }))
            .to_vec();
        let clip = clip_of(&gpu, &tracks);
        let times = samples.times(&tracks[0].times, 60_000);
        let got = clip.sample(&times, Wrap::Clamp).wait().unwrap();
        for (row, t) in got.chunks(10).zip(&times) {
            check_row(&gpu, row, &tracks, f64::from(*t));
        }
    }
}
