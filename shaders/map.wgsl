// An expression of each element, generated: fusion fills the hole with the operands and the expression.
// Grid: one thread per four elements of a call, by the segment table.

alias F = vec4<f32>;
alias U = vec4<u32>;
alias B = vec4<bool>;

// HOLE, with an example in it.
const WORDS = 1u; // Words of an entry behind the address of the result.

@group(0) @binding(0) var<storage, read>       in0:      array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

fn compute(entry: u32, i: u32) {
    let v0 = bitcast<F>(in0[operand(entry, 0u) / 4u + i]);
    output[result(entry) / 4u + i] = bitcast<U>(relu(v0));
}
// END

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, WORDS);
    if thread.idle { return; }
    compute(thread.entry, thread.index);
}
