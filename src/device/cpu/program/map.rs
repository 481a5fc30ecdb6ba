//! Maps: an expression of each element, in blocks.

use super::stage_run::{Elements, IndexedLoad, RowLines, Run, copy};
use super::strided::Places;
use crate::device::cpu::expr::{BLOCK, Whole};
use crate::program::{Access, Map};

/// Computes some elements of one call.
pub(super) fn run(run: &Run<'_>, map: &Map, wanted: RowLines<'_>) {
    let (lines, columns, mut output) = (wanted.lines, wanted.columns, wanted.output);
    let dims = run.dims(run.layout.outer, map.rank);
    run.fill_scalars(columns, BLOCK.min(lines.len()));
    for first in lines.clone().step_by(BLOCK) {
        let elements = BLOCK.min(lines.end - first);
        columns.first = first;
        let result = Places {
            offset: run.sizes.result,
            dims: if map.is_strided { &dims } else { &[] },
            strides: match map.is_strided {
                true => run.words(run.layout.result, map.rank),
                false => &[],
            },
            first,
        };
        for (load, of) in run.stage.loads.iter().enumerate() {
            if of.is_in_place() {
                let words = output.words_at(result.place(), elements);
                copy(words, columns.column(load));
                continue;
            }
            let offset = run.sizes.offsets[load];
            let strides = run.layout.strides[load];
            if of.access == Access::Whole {
                let whole = Whole {
                    at: offset as usize,
                    count: run.word(strides) as usize,
                    width: run.word(strides + 1),
                };
                columns.refer_whole(load, whole);
                continue;
            }
            let (dims, by) = match of.access {
                Access::Flat | Access::Found | Access::Whole => (&[][..], &[][..]),
                Access::Strided | Access::Indexed(_) => (&dims[..], run.words(strides, map.rank)),
            };
            let places = Places {
                offset,
                dims,
                strides: by,
                first,
            };
            let from = Elements {
                places,
                count: elements,
            };
            if !run.refer(columns, load, from) {
                let index = strides + map.rank;
                run.read(columns, IndexedLoad { load, index }, from, 0);
            }
        }
        let to = Elements {
            places: result,
            count: elements,
        };
        run.store(columns, &map.value, to, &mut output);
    }
}
