// The sum of a long row by one thread, as the workgroups of `wide_rows.wgsl` sum it, without their barriers, each of which
// costs a processor more than a row.

alias Sums = array<f32, WORKGROUP>; // Those of the threads that a workgroup would have.

fn add(sums: ptr<function, Sums>, j: u32, value: f32) { (*sums)[j % WORKGROUP] += value; }

fn fold_sum(lane: u32, sums: Sums) -> f32 {
    var parts = sums;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        for (var k = 0u; k < half; k++) { parts[k] += parts[k + half]; }
    }
    return parts[0];
}
