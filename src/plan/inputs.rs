//! Where the inputs of a chain lie: with the call, or on the device.

use crate::graph::chain::{Chain, Home, Node, Op};

/// Where the inputs of a chain lie.
#[derive(Default)]
pub(super) struct Inputs {
    /// For each input its number among the operands, or among the resident tensors.
    pub(super) ordinals: Vec<usize>,
    /// Elements of each input that comes with the call.
    pub(super) carried: Vec<u32>,
}

impl Inputs {
    pub(super) fn of(chain: &Chain) -> Inputs {
        let (mut inputs, mut residents) = (Inputs::default(), 0);
        for node in chain.inputs() {
            inputs.ordinals.push(match home(node) {
                Home::Call => {
                    inputs.carried.push(node.shape.count());
                    inputs.carried.len() - 1
                }
                Home::Resident | Home::Packed(_) => {
                    residents += 1;
                    residents - 1
                }
            });
        }
        inputs
    }
}

/// Where an input lies.
pub(super) fn home(node: &Node) -> Home {
    match node.op {
        Op::Input { home, .. } => home,
        _ => Home::Call,
    }
}
