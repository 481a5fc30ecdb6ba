//! What a stage is told of one call.

/// What a stage reads for one call.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// For each load all words of its source.
    pub loads: &'a [&'a [u32]],
    /// The call's constants.
    pub constants: &'a [u32],
}

/// What the segment table says of a call: the numbers of its
/// [`StageSizes`](crate::program::StageSizes), and where its words lie.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// Threads that the call takes.
    pub threads: u32,
    /// For each load the place of its first element.
    pub offsets: &'a [u32],
    /// Words of the output in front of the call's result.
    pub result: u32,
    /// The words of the call's entry behind its addresses.
    pub words: &'a [u32],
}

/// One call of a stage.
#[derive(Clone, Copy, Debug)]
pub struct StageCall<'a> {
    /// What the segment table says of the call.
    pub numbers: Numbers<'a>,
    /// What the stage reads for the call.
    pub operands: &'a Operands<'a>,
}
