use super::cores::{Placed, tasks};
use super::*;

/// The sizes of calls of so many lines each, of two words a line, with a gap before each call.
fn sizes(lines: &[usize]) -> Vec<Size> {
    let mut start = 1;
    let size = |lines: &usize| {
        let size = Size {
            start,
            lines: *lines,
            words: 2,
            work: 50_000,
        };
        start += 2 * lines + 2;
        size
    };
    lines.iter().map(size).collect()
}

fn plan(sizes: &[Size], cores: usize) -> Option<Vec<Placed>> {
    let last = sizes.last().expect("there are calls");
    let words = last.start + last.lines * last.words;
    let work = Work {
        calls: sizes.len(),
        size: &|call| Some(sizes[call]),
        run: &|_, _| {},
    };
    tasks(&work, cores, words)
}

#[test]
fn every_line_is_in_one_task_and_in_its_words() {
    let cases: [&[usize]; 5] = [
        &[10_000],
        &[1; 3000],
        &[1, 9000, 0, 3, 5000, 7],
        &[0, 2999, 0],
        &[300, 4001, 300],
    ];
    for lines in cases {
        let sizes = sizes(lines);
        for cores in [2, 3, 16] {
            let tasks = plan(&sizes, cores).expect("enough for all");
            assert!(tasks.len() > 1, "{lines:?} on {cores}");
            let mut done = vec![0; lines.len()];
            let mut end = 0;
            for Placed { task, words } in tasks {
                assert!(words.start >= end, "{lines:?}: {task:?} overlaps");
                end = words.end;
                for call in task.calls.clone() {
                    let size = sizes[call];
                    let own = task.lines.clone().unwrap_or(0..size.lines);
                    assert_eq!(own.start, done[call], "{lines:?}: {task:?}");
                    done[call] = own.end;
                    let at = |line| size.start + line * size.words;
                    if !own.is_empty() {
                        assert!(words.start <= at(own.start) && at(own.end) <= words.end);
                    }
                }
            }
            for (call, lines) in lines.iter().enumerate() {
                assert_eq!(done[call], *lines, "call {call}");
            }
        }
    }
}

#[test]
fn little_work_and_scattered_lines_stay_on_one_core() {
    assert!(plan(&sizes(&[100, 60]), 16).is_none(), "little");
    assert!(plan(&sizes(&[9000]), 1).is_none(), "one core");
    let mut turned = sizes(&[9000, 9000]);
    turned.reverse();
    turned[1].lines -= 1;
    assert!(plan(&turned, 4).is_none(), "in another order");
    let scattered = Work {
        calls: 1,
        size: &|_| None,
        run: &|_, _| {},
    };
    assert!(tasks(&scattered, 4, 100).is_none(), "without order");
}
