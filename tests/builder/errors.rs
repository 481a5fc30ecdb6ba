//! What cannot be asked is an error at the line that asked, and says how to
//! ask instead.

use framebatch::{
    Attention, Batch, BatchConfig, Capacity, Code, EngineChoice, Error, Gpu, Overflow, Value,
};
use pollster::block_on;

use crate::engines::{both, both_manual, manual, open};

/// Records what is refused, given a vector of 4 and a matrix of 3 by 4.
type Mistake = fn(&Gpu, &mut Batch<'_>, [Value; 2]) -> Result<(), Error>;

fn of_another(gpu: &Gpu) -> Value {
    gpu.batch().upload(&[1.0])
}

const MISTAKES: [(&str, Mistake, &str); 20] = [
    (
        "add",
        |_, batch, [_, matrix]| {
            let five = batch.upload(&[0.0; 5]);
            batch.add(matrix, five).map(|_| ())
        },
        "add: shapes [3, 4] and [5] do not broadcast",
    ),
    (
        "sub",
        |_, batch, [vector, _]| {
            let five = batch.upload(&[0.0; 5]);
            batch.sub(five, vector).map(|_| ())
        },
        "sub: shapes [5] and [4] do not broadcast",
    ),
    (
        "dot of numbers",
        |_, batch, [vector, _]| {
            let number = batch.dot(vector, vector)?;
            batch.dot(number, number).map(|_| ())
        },
        "dot: shapes [] and [] have no axis to sum along",
    ),
    (
        "matmul of a number",
        |_, batch, [vector, matrix]| {
            let number = batch.dot(vector, vector)?;
            batch.matmul(matrix, number).map(|_| ())
        },
        "matmul: shapes [3, 4] and [] must have 1 to 7 dimensions each; multiply by a number with mul",
    ),
    (
        "matmul of a row",
        |_, batch, [vector, matrix]| batch.matmul(vector, matrix).map(|_| ()),
        "matmul: shapes [4] and [3, 4] must agree in the last dimension of the first and the one before the last of the second",
    ),
    (
        "matmul of a column",
        |_, batch, [vector, _]| {
            let five = batch.upload(&[0.0; 5]);
            batch.matmul(vector, five).map(|_| ())
        },
        "matmul: shapes [4] and [5] must agree in their last dimensions",
    ),
    (
        "matmul",
        |_, batch, [_, matrix]| batch.matmul(matrix, matrix).map(|_| ()),
        "matmul: shapes [3, 4] and [3, 4] must agree in the last dimension of the first and the one before the last of the second",
    ),
    (
        "attention of a vector",
        |_, batch, [vector, matrix]| {
            let heads = Attention::heads(2);
            batch.attention(vector, matrix, matrix, heads).map(|_| ())
        },
        "attention: shape [4] must have 2 to 7 dimensions, the last two rows and floats",
    ),
    (
        "attention of no heads",
        |_, batch, [_, matrix]| {
            let heads = Attention::heads(0);
            batch.attention(matrix, matrix, matrix, heads).map(|_| ())
        },
        "attention: rows of shape [3, 4] are not 0 heads of 1 to 512 floats",
    ),
    (
        "upload_shaped",
        |_, batch, _| batch.upload_shaped(&[0.0; 5], &[2, 3]).map(|_| ()),
        "upload_shaped: the data has 5 elements, but shape [2, 3] has 6; give as many",
    ),
    (
        "rank",
        |_, batch, _| batch.upload_shaped(&[0.0], &[1; 9]).map(|_| ()),
        "a tensor has at most 8 dimensions, not 9",
    ),
    (
        "tensor",
        |gpu, _, _| gpu.tensor(&[0.0; 5], &[4]).map(|_| ()),
        "tensor: the data has 5 elements, but shape [4] has 4; give as many",
    ),
    (
        "another's value",
        |gpu, batch, [vector, _]| batch.mul(vector, of_another(gpu)).map(|_| ()),
        "mul: a value is of another batch; values cannot be shared, tensors can",
    ),
    (
        "another's result",
        |gpu, batch, _| block_on(batch.read(of_another(gpu))).map(|_| ()),
        "read: a value is of another batch; values cannot be shared, tensors can",
    ),
    (
        "another session's tensor",
        |_, batch, _| {
            let other = open(EngineChoice::Cpu, manual());
            batch.tensor(&other.tensor(&[1.0], &[1])?).map(|_| ())
        },
        "tensor: it is of another session; make it with this one",
    ),
    (
        "too early",
        |_, batch, [vector, _]| block_on(batch.read(vector)).map(|_| ()),
        "read: execute the batch first",
    ),
    (
        "nothing",
        |gpu, _, _| {
            let mut batch = gpu.batch();
            batch.upload(&[1.0]);
            block_on(batch.execute())
        },
        "execute: nothing was asked for; apply an operation, or keep or compute a value",
    ),
    (
        "an intermediate",
        |_, batch, [vector, _]| {
            let middle = batch.relu(vector)?;
            batch.gelu(middle)?;
            block_on(batch.execute())?;
            block_on(batch.read(middle)).map(|_| ())
        },
        "read: this value was not kept, because another operation uses it or nothing computed it; call `keep` with it before `execute`",
    ),
    (
        "too many",
        |_, batch, [mut value, _]| {
            loop {
                value = batch.tanh(value)?;
            }
        },
        "tanh: a chain has at most 4096 nodes; read an intermediate result",
    ),
    (
        "an upload too many",
        |_, batch, [vector, _]| {
            while batch.relu(vector).is_ok() {}
            let late = batch.upload(&[1.0]); // Refused where it is used.
            batch.keep(late)
        },
        "tensor: a chain has at most 4096 nodes; read an intermediate result",
    ),
];

#[test]
fn mistakes_name_what_was_given_and_what_to_give() {
    for gpu in both() {
        for (name, mistake, message) in MISTAKES {
            let mut batch = gpu.batch();
            let vector = batch.upload(&[0.0; 4]);
            let matrix = batch.upload_shaped(&[0.0; 12], &[3, 4]).unwrap();
            let error = mistake(&gpu, &mut batch, [vector, matrix]).unwrap_err();
            assert_eq!(error.to_string(), message, "{name}");
            assert_eq!(error.code(), Code::InvalidInput, "{name}");
        }
    }
}

#[test]
fn a_batch_is_executed_once() {
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload(&[1.0]);
        let y = batch.relu(x).unwrap();
        block_on(batch.execute()).unwrap();
        let late = batch.upload(&[1.0]);
        let errors = [
            block_on(batch.execute()).unwrap_err(),
            batch.scale(y, 2.0).unwrap_err(),
            batch.add(y, y).unwrap_err(),
            batch.keep(y).unwrap_err(),
            batch.relu(late).unwrap_err(),
            batch.upload_shaped(&[1.0], &[1]).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.ends_with("the batch was executed already; make another one"));
        }
        assert_eq!(block_on(batch.read(y)).unwrap(), [1.0]);
    }
}

#[test]
fn mistakes_leave_a_batch_as_it_was() {
    for gpu in both() {
        let mut batch = gpu.batch();
        let x = batch.upload(&[1.0, -2.0]);
        let three = batch.upload(&[0.0; 3]);
        assert!(batch.add(x, three).is_err());
        assert!(block_on(batch.read(x)).is_err());
        assert!(batch.upload_shaped(&[0.0; 3], &[4]).is_err());
        assert_eq!((batch.num_operations(), batch.num_buffers()), (0, 2));
        let y = batch.relu(x).unwrap();
        block_on(batch.execute()).unwrap();
        assert_eq!(block_on(batch.read(y)).unwrap(), [1.0, 0.0]);
    }
}

#[test]
fn what_a_full_queue_refuses_can_be_executed_again() {
    let batch = BatchConfig {
        overflow: Overflow::Reject,
        // Room for the first call, of 20 bytes, and not for the second as well. The first
        // does not fill it: the worker sends a full queue at once.
        queue_capacity: Capacity {
            calls: 8,
            bytes: 28,
        },
        ..manual()
    };
    let gpu = open(EngineChoice::Cpu, batch);
    let first = gpu.relu(&[1.0]);
    let mut batch = gpu.batch();
    let x = batch.upload(&[-3.0, 3.0]);
    let y = batch.relu(x).unwrap();
    let refused = block_on(batch.execute()).unwrap_err();
    assert_eq!(refused.code(), Code::QueueFull);
    gpu.flush();
    assert_eq!(block_on(first).unwrap(), [1.0]);
    let again = batch.execute();
    gpu.flush();
    block_on(again).unwrap();
    assert_eq!(block_on(batch.read(y)).unwrap(), [0.0, 3.0]);
}

#[test]
fn an_execution_that_is_dropped_is_given_up() {
    for gpu in both_manual() {
        let mut batch = gpu.batch();
        let x = batch.upload(&[-3.0, 3.0]);
        let y = batch.relu(x).unwrap();
        drop(batch.execute());
        let stats = gpu.stats();
        assert_eq!((stats.calls, stats.rejected, stats.pending), (1, 1, 0));
        let again = batch.execute();
        gpu.flush();
        block_on(again).unwrap();
        assert_eq!(block_on(batch.read(y)).unwrap(), [0.0, 3.0]);
    }
}

#[test]
fn a_session_that_ended_refuses_everything() {
    for gpu in both() {
        let tensor = gpu.tensor(&[1.0], &[1]).unwrap();
        let mut batch = gpu.batch();
        let x = batch.tensor(&tensor).unwrap();
        batch.relu(x).unwrap();
        gpu.dispose();
        let errors = [
            block_on(batch.execute()).unwrap_err(),
            gpu.tensor(&[1.0], &[1]).unwrap_err(),
            block_on(gpu.relu(&[1.0])).unwrap_err(),
        ];
        assert_eq!(errors.map(|error| error.code()), [Code::Disposed; 3]);
    }
}

#[test]
fn the_longest_chain_is_computed() {
    for gpu in both() {
        let mut batch = gpu.batch();
        let mut value = batch.upload(&[1.0]);
        while let Ok(next) = batch.neg(value) {
            value = next;
        }
        block_on(batch.execute()).unwrap();
        // An upload and 4,095 negations.
        assert_eq!(block_on(batch.read(value)).unwrap(), [-1.0]);
    }
}
