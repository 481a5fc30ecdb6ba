//! Encodes clips, which are keyframe tracks, in the words that kernels read.
//!
//! A clip is `[duration, lanes, 0, 0]`, its lanes, then the keys and values of its tracks. A lane
//! is `[times, keys, values, words from key to key, flags | first float of the row << 8, easing,
//! floats, width]`; addresses count from the clip's first word. The samplers are those of glTF
//! 2.0, appendix C. Sampling itself is `shaders/clip.wgsl`.

use crate::error::Error;

/// The most floats of a row of a clip.
pub const MAX_WIDTH: usize = 1 << 20;

/// Keyframes of one value: the times of keys, and the values there.
#[derive(Clone, Copy, Debug)]
pub struct Track<'a> {
    /// The times of keys in seconds, rising; of equal times the last counts. A GPU may take a
    /// subnormal time (below 1.2e-38) for 0, also one that is sampled.
    pub times: &'a [f32],
    /// The values, key after key, of equally many floats; for a cubic spline the in-tangent, the
    /// value and the out-tangent of each key.
    pub values: &'a [f32],
    /// What the values are.
    pub kind: Kind,
    /// How values between keys are computed.
    pub interpolation: Interpolation,
    /// How progress from key to key is eased.
    pub easing: Easing,
}

/// What the values of a track are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Vectors of any number of floats.
    #[default]
    Vector,
    /// Unit quaternions, xyzw.
    Quaternion,
}

/// How values between keys are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The value of the key before.
    Step,
    /// Straight from value to value; quaternions along the shorter arc.
    #[default]
    Linear,
    /// Cubic Hermite curves; tangents are per second. Quaternions are scaled to
    /// length 1.
    CubicSpline,
}

/// How progress from one key to the next is eased.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Easing {
    /// Progress is not eased.
    #[default]
    Linear,
    /// CSS's `cubic-bezier(x1, y1, x2, y2)`, both x within 0 and 1.
    CubicBezier([f32; 4]),
    /// CSS's `steps(count, jump)`.
    Steps(u32, Jump),
}

/// Where the jumps of steps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// There is a jump at the start.
    Start,
    /// There is a jump at the end.
    End,
    /// There is no jump at either end.
    None,
    /// There is a jump at each end.
    Both,
}

/// What becomes of a time outside of a clip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrap {
    /// The time becomes the nearer end.
    #[default]
    Clamp,
    /// The clip begins again.
    Loop,
    /// The clip is played to and fro.
    PingPong,
}

/// A clip as words.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The words, a multiple of four.
    pub words: Vec<u32>,
    /// How many lanes the clip has.
    pub lanes: u32,
    /// Floats of a row.
    pub width: u32,
    /// The duration in seconds.
    pub duration: f32,
}

/// Encodes tracks, whose values side by side make up a row. The duration is the time of the last
/// key, unless one is given.
///
/// # Errors
///
/// [`Error::InvalidInput`] naming the track that is wrong.
pub fn encode(tracks: &[Track<'_>], duration: Option<f32>) -> Result<Encoded, Error> {
    if tracks.is_empty() {
        return Err(invalid("a clip has at least 1 track"));
    }
    let widths: Vec<usize> = (tracks.iter().enumerate())
        .map(|(index, track)| check(index, track))
        .collect::<Result<_, _>>()?;
    let last = |track: &Track<'_>| track.times[track.times.len() - 1];
    let duration = duration.unwrap_or_else(|| tracks.iter().map(last).fold(0.0, f32::max));
    if !(duration >= 0.0 && duration.is_finite()) {
        return Err(invalid(&format!(
            "duration must be a number from 0, got {duration}"
        )));
    }
    let (width, lanes): (usize, usize) = (
        widths.iter().sum(),
        widths.iter().map(|width| width.div_ceil(4)).sum(),
    );
    if width > MAX_WIDTH {
        return Err(invalid(&format!(
            "its tracks have {width} floats together, but a clip has at most {MAX_WIDTH}"
        )));
    }
    let mut words = vec![0; 4 + 8 * lanes];
    words[0] = duration.to_bits();
    words[1] = count(lanes);
    let (mut lane, mut row) = (4, 0);
    for (index, (track, width)) in tracks.iter().zip(widths).enumerate() {
        let same = tracks[..index]
            .iter()
            .position(|other| std::ptr::eq(other.times, track.times));
        // Tracks of one model often share their keys.
        let times = match same {
            Some(same) => words[4 + 8 * first_lane(tracks, same)],
            None => push(&mut words, track.times),
        };
        let values = push(&mut words, track.values);
        let (easing, flags) = match track.easing {
            Easing::Linear => (0, 0),
            Easing::CubicBezier(points) => (push(&mut words, &points), 8),
            Easing::Steps(steps, jump) => (push(&mut words, &numbers(steps, jump)), 16),
        };
        let flags = flags
            | match track.kind {
                Kind::Vector => 0,
                Kind::Quaternion => 4,
            }
            | track.interpolation as u32;
        let is_cubic = track.interpolation == Interpolation::CubicSpline;
        let stride = if is_cubic { 3 * width } else { width };
        for first in (0..width).step_by(4) {
            words[lane..lane + 8].copy_from_slice(&[
                times,
                count(track.times.len()),
                values + count(first),
                count(stride),
                flags | count(row + first) << 8,
                easing,
                count(4.min(width - first)),
                count(width),
            ]);
            lane += 8;
        }
        row += width;
    }
    words.resize(words.len().next_multiple_of(4), 0);
    Ok(Encoded {
        words,
        lanes: count(lanes),
        width: count(width),
        duration,
    })
}

/// The numbers by which the kernel computes steps: steps, jumps at the start, all jumps.
fn numbers(steps: u32, jump: Jump) -> [f32; 4] {
    let (first, more) = match jump {
        Jump::Start => (1.0, 0.0),
        Jump::End => (0.0, 0.0),
        Jump::None => (0.0, -1.0),
        Jump::Both => (1.0, 1.0),
    };
    let steps = steps as f32;
    [steps, first, steps + more, 0.0]
}

/// Kind and width of each track. Clips of equal signatures have equal rows, and can be blended.
pub fn signature(tracks: &[Track<'_>]) -> Vec<(Kind, u32)> {
    let tracks = tracks.iter();
    tracks
        .map(|track| (track.kind, count(width_of(track))))
        .collect()
}

/// The number of the first lane of a track.
fn first_lane(tracks: &[Track<'_>], track: usize) -> usize {
    let before = tracks[..track].iter();
    before.map(|track| width_of(track).div_ceil(4)).sum()
}

fn width_of(track: &Track<'_>) -> usize {
    let per_key = match track.interpolation {
        Interpolation::CubicSpline => 3,
        Interpolation::Step | Interpolation::Linear => 1,
    };
    track.values.len() / (track.times.len() * per_key)
}

fn push(words: &mut Vec<u32>, floats: &[f32]) -> u32 {
    let at = count(words.len());
    words.extend(floats.iter().map(|float| float.to_bits()));
    at
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a clip has fewer than 2^32 words")
}

/// Checks a track, and returns how many floats its values have.
fn check(index: usize, track: &Track<'_>) -> Result<usize, Error> {
    let wrong = |problem: &str| Err(invalid(&format!("tracks[{index}]{problem}")));
    let keys = track.times.len();
    if keys == 0 {
        return wrong(".times is empty; give at least 1 key");
    }
    if let Some(at) = track.times.iter().position(|time| !time.is_finite()) {
        return wrong(&format!(
            ".times[{at}] is {}; give a finite number",
            track.times[at]
        ));
    }
    if let Some(at) = track.times.windows(2).position(|pair| pair[1] < pair[0]) {
        return wrong(&format!(
            ".times[{}] is before the one in front of it; sort the keys",
            at + 1
        ));
    }
    let width = width_of(track);
    let is_cubic = track.interpolation == Interpolation::CubicSpline;
    let per_key = if is_cubic { 3 * width } else { width };
    if width == 0 || per_key * keys != track.values.len() {
        let per_key = if is_cubic { "3 values" } else { "1 value" };
        return wrong(&format!(
            ".values has {} floats, which is not {per_key} for each of {keys} keys",
            track.values.len()
        ));
    }
    if track.kind == Kind::Quaternion && width != 4 {
        return wrong(&format!(
            " has {width} floats a value, but a quaternion has 4"
        ));
    }
    let has_steps = track.interpolation == Interpolation::Step;
    match track.easing {
        Easing::Linear => Ok(width),
        _ if has_steps => wrong(".easing has no effect on steps from key to key; leave it out"),
        Easing::CubicBezier([x1, _, x2, _])
            if !((0.0..=1.0).contains(&x1) && (0.0..=1.0).contains(&x2)) =>
        {
            wrong(".easing: x1 and x2 must be within 0 and 1")
        }
        Easing::CubicBezier(points) if points.iter().any(|point| !point.is_finite()) => {
            wrong(".easing: give finite numbers")
        }
        Easing::Steps(0, _) | Easing::Steps(1, Jump::None) => {
            wrong(".easing: steps need at least 1 jump")
        }
        Easing::CubicBezier(_) | Easing::Steps(..) => Ok(width),
    }
}

fn invalid(problem: &str) -> Error {
    Error::InvalidInput(["clip: ", problem].concat())
}
