//! What is refused of definitions and of calls, and what is said.

use framebatch::{Code, EngineChoice, KernelDefinition};

use super::engines::{in_time, manual, open};
use super::{DECAY, decay};

#[test]
fn code_that_is_no_body_is_refused_by_its_place() {
    for (code, place, said) in [
        (
            "fn element(x: f32) -> f32 { return x; }\n@compute fn main() {}",
            "2:1",
            "attributes",
        ),
        (
            "@group(0) @binding(0) var<storage> a: array<f32>;",
            "1:1",
            "attributes",
        ),
        (
            "enable f16;\nfn element(x: f32) -> f32 { return x; }",
            "1:1",
            "directives",
        ),
        ("var<workgroup> a: f32;", "1:1", "variables outside"),
        (
            "fn element(x: f32) -> f32 {\n  workgroupBarrier();\n  return x; }",
            "2:3",
            "workgroupBarrier",
        ),
        (
            "fn f(p: ptr<storage, f32>) {}",
            "1:9",
            "memory of the function itself",
        ),
        (
            "fn max(x: f32) -> f32 { return x; }",
            "1:4",
            "a word of WGSL",
        ),
        (
            "fn element(x: f32) -> f32 { return params.dt; }",
            "1:43",
            "there is no param `dt`",
        ),
        (
            "fn elements(x: f32) -> f32 { return x; }",
            "1:1",
            "no function `element`",
        ),
        (
            "fn element(x: f32) -> bool { return x > 0.0; }",
            "1:4",
            "must give a number such as f32",
        ),
        (
            "fn element(x: texture) -> f32 { return 0.0; }",
            "1:12",
            "numbers such as f32",
        ),
        (
            "fn element() -> f32 { return 0.0; }",
            "1:4",
            "1 to 6 values",
        ),
        (
            "fn element(x: f32) -> f32 { return #x; }",
            "1:36",
            "no character of WGSL",
        ),
    ] {
        let error = KernelDefinition::new("mine", code).build().unwrap_err();
        assert_eq!(error.code(), Code::InvalidInput);
        let message = error.to_string();
        assert!(message.starts_with(&format!("mine:{place}: ")), "{message}");
        assert!(message.contains(said), "{message}");
    }
    let error = KernelDefinition::new("a b", DECAY).build().unwrap_err();
    assert!(error.to_string().contains("got 'a b'"), "{error}");
    let twice = KernelDefinition::new("mine", DECAY)
        .param("dt", 0.0)
        .param("dt", 0.0);
    assert!(twice.build().is_err());
}

#[test]
fn what_a_compiler_refuses_fails_its_own_calls_alone() {
    in_time(|| {
        let gpu = open(EngineChoice::Gpu, manual());
        let code = "fn half(x: f32) -> f32 {\n    return x * 0.5;\n}\nfn element(x: f32) -> f32 { for (;;) { break; }\n    let y = half(x); return y + segments[0]; }";
        let kernel = KernelDefinition::new("wrong", code).build().unwrap();
        let mut batch = gpu.batch();
        let x = batch.upload(&[1.0]);
        batch.apply(&kernel, &[x], &[]).unwrap();
        let other = gpu.lerp(&[0.0], &[1.0], 0.5);
        let call = batch.execute();
        gpu.flush();
        let error = pollster::block_on(call).unwrap_err();
        assert_eq!(error.code(), Code::Shader);
        let message = error.to_string();
        assert!(message.contains("wrong:5:33: "), "{message}");
        assert!(
            message.contains("let y = half(x); return y + segments[0]; }"),
            "{message}"
        );
        assert!(!message.contains("k0_"), "{message}");
        assert_eq!(pollster::block_on(other).unwrap(), [0.5]);
    });
}

#[test]
fn wrong_calls_are_refused_and_say_what_is_wanted() {
    let decay = decay();
    let gpu = open(EngineChoice::Cpu, manual());
    let mut batch = gpu.batch();
    let x = batch.upload(&[1.0]);
    let y = batch.upload(&[1.0, 2.0]);
    let z = batch.upload(&[1.0, 2.0, 3.0]);
    let error = batch.apply(&decay, &[x], &[0.5.into()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("decay takes 2 values (height, speed), not 1"),
        "{error}"
    );
    let error = batch.apply(&decay, &[x, x], &[1.into()]).unwrap_err();
    assert!(
        error.to_string().contains("(dt: f32), got [I32(1)]"),
        "{error}"
    );
    let error = batch.apply(&decay, &[y, z], &[0.5.into()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("decay: shapes [2] and [3] do not broadcast"),
        "{error}"
    );
}

#[test]
fn on_the_cpu_a_kernel_without_a_function_fails_and_a_function_that_panics_fails_its_call() {
    let gpu = open(EngineChoice::Cpu, manual());
    let alone = KernelDefinition::new("alone", "fn element(x: f32) -> f32 { return x; }");
    let alone = alone.build().unwrap();
    let panics = KernelDefinition::new("panics", "fn element(x: f32) -> f32 { return x + 1.0; }");
    let panics = panics.cpu(|values, _| {
        assert!(values[0] < 2.0, "as the test wants it");
        values[0] + 1.0
    });
    let panics = panics.build().unwrap();
    let mut batches: Vec<_> = [
        (&alone, 1.0),
        (&panics, 1.0),
        (&panics, 3.0),
        (&panics, 0.0),
    ]
    .map(|(kernel, x)| {
        let mut batch = gpu.batch();
        let x = batch.upload(vec![x]);
        let y = batch.apply(kernel, &[x], &[]).unwrap();
        (batch, y)
    })
    .into();
    let calls: Vec<_> = batches
        .iter_mut()
        .map(|(batch, _)| batch.execute())
        .collect();
    gpu.flush();
    let outcomes: Vec<_> = calls.into_iter().map(pollster::block_on).collect();
    assert_eq!(outcomes[0].as_ref().unwrap_err().code(), Code::Unsupported);
    assert_eq!(outcomes[2].as_ref().unwrap_err().code(), Code::InvalidInput);
    for (at, want) in [(1, 2.0), (3, 1.0)] {
        outcomes[at].as_ref().unwrap();
        let (batch, y) = &batches[at];
        assert_eq!(pollster::block_on(batch.read(*y)).unwrap(), [want]);
    }
}

#[test]
fn definitions_of_places_are_checked() {
    let code = "fn at(i: i32) -> f32 { return x(i); }";
    let definition = || KernelDefinition::new("mine", code);
    for (definition, said) in [
        (definition(), "looks at 1 to 6 inputs, got 0"),
        (definition().input("max"), "got 'max'"),
        (definition().input("x").input("x"), "got 'x'"),
        (definition().input("x").input("x_at"), "got 'x'"),
        (definition().input("params"), "got 'params'"),
        (definition().input("x").param("loop", 0.0), "got 'loop'"),
        (definition().input("x").cpu(|_, _| 0.0), "`cpu_at` for `at`"),
        (
            KernelDefinition::new("mine", "fn element(x: f32) -> f32 { return x; }").input("x"),
            "named by its parameters",
        ),
    ] {
        let message = definition.build().unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
    }
    let kernel = definition().input("x").build().unwrap();
    let gpu = open(EngineChoice::Cpu, manual());
    let mut batch = gpu.batch();
    let none = batch.upload(&[]);
    // The shape is that of the first input.
    assert!(batch.apply(&kernel, &[none], &[]).is_ok());
    let two = KernelDefinition::new("two", code)
        .input("x")
        .input("y")
        .build()
        .unwrap();
    let x = batch.upload(&[1.0]);
    let error = batch.apply(&two, &[x, none], &[]).unwrap_err().to_string();
    assert!(error.contains("holds nothing"), "{error}");
}
