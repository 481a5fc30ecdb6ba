// The sum of a short row: value by value.

alias Sums = f32;

fn add(sums: ptr<function, Sums>, j: u32, value: f32) { *sums += value; }

fn fold_sum(lane: u32, sums: Sums) -> f32 { return sums; }
