//! The numbers of chains on the wire: those of `pkg-template/src/tensor/codes.ts`
//! mean here what they are called there.

use std::collections::BTreeMap;

use framebatch::graph::chain::{Chain, Home, MAX_HEAD, MAX_NODES, Op};
use framebatch::graph::shape::{MAX_ELEMENTS, MAX_RANK, Shape};
use framebatch::graph::{CallerFn, FnContent, FnForm, FnInput, ScalarType, ValueType};
use framebatch::tensor::{DType, Packing};

/// The constants of the file: tables of numbers, and numbers by themselves in a
/// table without a name.
type Tables = BTreeMap<String, BTreeMap<String, i64>>;

fn tables() -> Tables {
    let mut tables = Tables::new();
    let mut open = String::new();
    for line in include_str!("../../pkg-template/src/tensor/codes.ts").lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("export const ") {
            let (name, value) = rest.split_once(" = ").unwrap();
            if value == "{" {
                name.clone_into(&mut open);
            } else {
                let number = number(value.strip_suffix(';').unwrap());
                let alone = tables.entry(String::new()).or_default();
                alone.insert(name.into(), number);
            }
        } else if let Some((name, value)) = line
            .strip_suffix(',')
            .and_then(|line| line.split_once(": "))
        {
            let table = tables.entry(open.clone()).or_default();
            table.insert(name.into(), number(value));
        }
    }
    tables
}

/// `12`, `2 ** 30` or `-(2 ** 31)`.
fn number(text: &str) -> i64 {
    if let Some(inner) = text.strip_prefix("-(") {
        return -number(inner.strip_suffix(')').unwrap());
    }
    match text.split_once(" ** ") {
        Some((base, power)) => number(base).pow(power.parse().unwrap()),
        None => text.parse().unwrap(),
    }
}

/// Words of a chain of nodes, given as code, operands and attributes; the last
/// one is read.
fn words(nodes: &[(i64, &[u32], &[i64])]) -> Vec<u32> {
    let mut words = vec![nodes.len() as u32, 1];
    for (code, operands, attributes) in nodes {
        let head = *code as u32 | (operands.len() as u32) << 8 | (attributes.len() as u32) << 16;
        words.push(head);
        words.extend_from_slice(operands);
        words.extend(attributes.iter().map(|word| *word as u32));
    }
    words.push(nodes.len() as u32 - 1);
    words
}

#[test]
fn codes_mean_what_they_are_called() {
    let tables = tables();
    let code = &tables["CODE"];
    let input: (i64, &[u32], &[i64]) = (code["input"], &[], &[0, 0, 4, 4]);
    let index: (i64, &[u32], &[i64]) = (code["input"], &[], &[1, 0, 2]);
    let number: (i64, &[u32], &[i64]) = (code["constant"], &[], &[]);
    let mut tried = 0;
    let mut check = |name: &str, nodes: &[(i64, &[u32], &[i64])]| {
        let chain = Chain::decode(&words(nodes)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(chain.nodes().last().unwrap().op.name(), name);
        tried += 1;
    };
    for (table, of, operands) in [("UNARY", "unary", &[0][..]), ("BINARY", "binary", &[0, 0])] {
        for (name, function) in &tables[table] {
            check(name, &[input, (code[of], operands, &[*function])]);
        }
    }
    for (name, reduction) in &tables["REDUCTION"] {
        check(name, &[input, (code["reduce"], &[0], &[*reduction, 0, 1])]);
    }
    for (name, norm) in &tables["NORM"] {
        let operands: &[u32] = if name == "softmax" { &[0] } else { &[0, 1] };
        check(
            name,
            &[input, number, (code["norm"], operands, &[*norm, 1])],
        );
    }
    check("tensor", &[input]);
    check("number", &[number]);
    let same: [i64; 6] = [0, 1, 4, 0, 1, 4];
    let others: [(&str, &[u32], &[i64]); 10] = [
        ("clamp", &[0, 2, 2], &[]),
        ("where", &[2, 0, 2], &[]),
        ("dot", &[0, 0], &[]),
        ("matmul", &[0, 0], &[0]),
        ("attention", &[0, 0, 0, 2], &[2, 1]),
        ("transpose", &[0], &[1, 0]),
        ("slice", &[0], &same),
        ("reshape", &[0], &[2, 8]),
        ("gather", &[0, 1], &[1]),
        ("concat", &[0, 0], &[1]),
    ];
    for (name, operands, attributes) in others {
        check(
            name,
            &[input, index, number, (code[name], operands, attributes)],
        );
    }
    let content = FnContent {
        name: "call".into(),
        code: String::new(),
        form: FnForm::Element,
        inputs: vec![
            FnInput {
                of: ValueType::F32,
                is_whole: false
            };
            2
        ],
        result: ValueType::F32,
        max_passes: None,
        params: vec![ScalarType::F32],
        told_by: None,
        flops: None,
    };
    let number = i64::from(CallerFn::define(content, |_| String::new(), None).number());
    let constant = (code["constant"], &[][..], &[][..]);
    check(
        "call",
        &[input, constant, (code["call"], &[0, 0, 1], &[number])],
    );
    // Each code was tried: the four with tables once for each of their entries.
    let of_tables: usize = ["UNARY", "BINARY", "REDUCTION", "NORM"]
        .iter()
        .map(|table| tables[*table].len())
        .sum();
    assert_eq!(tried, of_tables + code.len() - 4);
}

#[test]
fn what_inputs_are_is_what_they_are_called() {
    let tables = tables();
    let (code, alone) = (&tables["CODE"], &tables[""]);
    let of = |dtype: &str, home: &str| {
        let attributes = [alone[dtype], alone[home], 4];
        Chain::decode(&words(&[(code["input"], &[], &attributes)])).unwrap()
    };
    let floats = of("FLOATS", "WITH_CALL");
    assert_eq!(floats.nodes()[0].dtype, DType::F32);
    assert!(matches!(
        floats.nodes()[0].op,
        Op::Input {
            home: Home::Call,
            ..
        }
    ));
    for (name, home) in &tables["PACKED"] {
        let attributes = [alone["FLOATS"], *home, 4];
        let chain = Chain::decode(&words(&[(code["input"], &[], &attributes)])).unwrap();
        let Op::Input { home, .. } = chain.nodes()[0].op else {
            panic!("an input");
        };
        assert_eq!(home.packing().map(Packing::name), Some(name.as_str()));
        assert_eq!(Chain::decode(&chain.encode()).unwrap(), chain);
        // Indexes are never packed.
        let attributes = [alone["INDEXES"], attributes[1], 4];
        Chain::decode(&words(&[(code["input"], &[], &attributes)])).unwrap_err();
    }
    assert_eq!(tables["PACKED"].len(), Packing::ALL.len());
    assert_eq!(of("INTEGERS", "WITH_CALL").nodes()[0].dtype, DType::I32);
    let indexes = of("INDEXES", "RESIDENT");
    assert_eq!(indexes.nodes()[0].dtype, DType::U32);
    assert!(matches!(
        indexes.nodes()[0].op,
        Op::Input {
            home: Home::Resident,
            ..
        }
    ));
}

#[test]
fn limits_are_the_same() {
    let tables = tables();
    let alone = &tables[""];
    assert_eq!(alone["MAX_RANK"], MAX_RANK as i64);
    assert_eq!(alone["MAX_ELEMENTS"], i64::from(MAX_ELEMENTS));
    assert_eq!(alone["MAX_HEAD"], i64::from(MAX_HEAD));
    assert_eq!(alone["MAX_NODES"], MAX_NODES as i64);
    // Of the page's stack alone.
    assert_eq!(alone["MAX_DEPTH"], 1024);
    let one = Shape::new(&[1]).unwrap();
    let mut chain = Chain::default();
    let x = chain.input(one, DType::F32, Home::Call).unwrap();
    let most = alone["MAX_OPERANDS"] as usize;
    assert!(chain.concat(&vec![x; most], 0).is_ok());
    assert!(chain.concat(&vec![x; most + 1], 0).is_err());
    // Nothing else is in the file.
    assert_eq!(alone.len(), 11);
    assert_eq!(tables.len(), 7);
}
