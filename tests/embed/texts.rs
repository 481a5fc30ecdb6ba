//! From texts to embeddings: the tokenizer that a folder describes, prompts, long
//! texts and whole corpora.

use std::sync::Barrier;
use std::thread;

use framebatch::{Code, Embedder, EmbedderOptions, EngineChoice, Gpu, LongTexts, Preset, Storage};
use safetensors::tensor::Dtype;
use serde_json::{Value, json};

use crate::engines::{both_manual, in_time, manual, open};
use crate::model::{Files, TINY, folder};

fn gpu() -> Gpu {
    open(EngineChoice::Cpu, Preset::Eager.config())
}

fn tiny(gpu: &Gpu) -> Embedder {
    folder(&TINY, Dtype::F32).open(gpu, Storage::F32).unwrap()
}

/// The line of a token.
fn id(token: &str) -> u32 {
    let files = folder(&TINY, Dtype::F32);
    let vocab = String::from_utf8(files.get("vocab.txt").to_vec()).unwrap();
    let line = vocab.lines().position(|line| line == token);
    line.unwrap_or_else(|| panic!("{token} is no token")) as u32
}

fn ids(tokens: &str) -> Vec<u32> {
    tokens.split(' ').map(id).collect()
}

/// The folder with a `tokenizer.json` in place of its `vocab.txt`.
fn with_json(change: impl FnOnce(&mut Value)) -> Files {
    let mut files = folder(&TINY, Dtype::F32);
    let vocab = String::from_utf8(files.get("vocab.txt").to_vec()).unwrap();
    let lines = vocab.lines().zip(0_u32..);
    let vocab: serde_json::Map<String, Value> = lines
        .map(|(token, id)| (token.to_string(), id.into()))
        .collect();
    let special = |name: &str| {
        json!({
            "id": id(name), "content": name, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        })
    };
    let mut tokenizer = json!({
        "truncation": {"max_length": 4},
        "padding": {"strategy": {"Fixed": 40}, "pad_id": 0},
        "added_tokens": [special("[PAD]"), special("[UNK]"), special("[CLS]"), special("[SEP]")],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
        },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab,
        },
    });
    change(&mut tokenizer);
    files.set("tokenizer.json", tokenizer.to_string());
    files.0.retain(|(name, _)| name != "vocab.txt");
    files
}

#[test]
fn both_kinds_of_vocabulary_give_the_same_ids() {
    let gpu = gpu();
    let of_lines = tiny(&gpu);
    let of_json = with_json(|_| ()).open(&gpu, Storage::F32).unwrap();
    for (text, tokens) in [
        ("", "[CLS] [SEP]"),
        ("The cat sat.", "[CLS] the cat sat . [SEP]"),
        ("catsat 7", "[CLS] cat ##s ##a ##t 7 [SEP]"),
        ("running", "[CLS] r ##u ##n ##n ##ing [SEP]"),
        ("\u{4e2d}\u{6587}", "[CLS] \u{4e2d} \u{6587} [SEP]"),
        ("[SEP] a", "[CLS] [SEP] a [SEP]"),
    ] {
        let expected = ids(tokens);
        assert_eq!(of_lines.ids(text).unwrap(), expected, "{text:?}");
        assert_eq!(of_json.ids(text).unwrap(), expected, "{text:?} by JSON");
    }
    // The padding and truncation to 4 of the file are not followed.
    assert_eq!(of_json.ids("a b c d e f").unwrap().len(), 8);
}

#[test]
fn a_text_is_embedded_as_its_ids() {
    for gpu in both_manual() {
        let embedder = tiny(&gpu);
        for text in ["", "hello world", "the cat and the dog ran in fog"] {
            let of_text = embedder.embed(text);
            gpu.flush();
            let of_text = of_text.wait().unwrap();
            let of_ids = embedder.embed_ids(&embedder.ids(text).unwrap());
            gpu.flush();
            assert_eq!(of_text, of_ids.wait().unwrap(), "{text:?}");
        }
    }
}

#[test]
fn settings_of_a_vocabulary_are_followed() {
    let gpu = gpu();
    let mut files = folder(&TINY, Dtype::F32);
    files.set("tokenizer_config.json", r#"{"do_lower_case": false}"#);
    let cased = files.open(&gpu, Storage::F32).unwrap();
    assert_eq!(cased.ids("the Cat").unwrap(), ids("[CLS] the [UNK] [SEP]"));
    // Text put in lower case before, as a sentence encoder may ask for.
    let lower = String::from_utf8(files.get("sentence_bert_config.json").to_vec()).unwrap();
    files.set("sentence_bert_config.json", lower.replace("false", "true"));
    let lowered = files.open(&gpu, Storage::F32).unwrap();
    assert_eq!(lowered.ids("the Cat").unwrap(), ids("[CLS] the cat [SEP]"));
    let files = with_json(|json| json["normalizer"]["lowercase"] = false.into());
    let cased = files.open(&gpu, Storage::F32).unwrap();
    assert_eq!(cased.ids("the Cat").unwrap(), ids("[CLS] the [UNK] [SEP]"));
}

#[test]
fn prompts_stand_in_front_of_texts() {
    let gpu = gpu();
    let mut files = folder(&TINY, Dtype::F32);
    let with = |default: &str| {
        format!(
            r#"{{"prompts": {{"query": "a dog: ", "": ""}}, "default_prompt_name": {default}}}"#
        )
    };
    files.set("config_sentence_transformers.json", with("null"));
    let plain = files.open(&gpu, Storage::F32).unwrap();
    let query = plain.with_prompt(plain.prompt("query").unwrap());
    assert_eq!(plain.ids("cat").unwrap(), ids("[CLS] cat [SEP]"));
    assert_eq!(query.ids("cat").unwrap(), plain.ids("a dog: cat").unwrap());
    files.set("config_sentence_transformers.json", with("\"query\""));
    let default = files.open(&gpu, Storage::F32).unwrap();
    assert_eq!(default.ids("cat").unwrap(), query.ids("cat").unwrap());
    let without = default.with_prompt("");
    assert_eq!(without.ids("cat").unwrap(), plain.ids("cat").unwrap());
    files.set("config_sentence_transformers.json", with("\"other\""));
    let error = files.open(&gpu, Storage::F32).unwrap_err().to_string();
    assert!(
        error.contains("default_prompt_name must name one of its prompts, got \"other\""),
        "{error}"
    );
}

fn rejecting(gpu: &Gpu) -> Embedder {
    let files = folder(&TINY, Dtype::F32);
    let files: Vec<(&str, &[u8])> = files.0.iter().map(|(n, b)| (&n[..], &b[..])).collect();
    let options = EmbedderOptions {
        long_texts: LongTexts::Reject,
        ..EmbedderOptions::default()
    };
    Embedder::open(gpu, &files[..], options).unwrap()
}

#[test]
fn long_texts_are_cut_or_rejected() {
    let gpu = gpu();
    let (fits, long) = ("a ".repeat(38), "a ".repeat(39));
    let cut = tiny(&gpu);
    assert_eq!(cut.ids(&long).unwrap(), cut.ids(&fits).unwrap());
    assert_eq!(cut.ids(&long).unwrap().len(), 40);
    let rejecting = rejecting(&gpu);
    assert_eq!(rejecting.ids(&fits).unwrap().len(), 40);
    let error = rejecting.embed(&long).wait().unwrap_err().to_string();
    assert!(error.contains("more than the 40 tokens"), "{error}");
}

#[test]
fn a_tokenizer_that_is_not_known_leaves_ids() {
    let gpu = gpu();
    let mut bare = folder(&TINY, Dtype::F32);
    bare.0.retain(|(name, _)| name != "vocab.txt");
    let kind = |part: &'static str, kind: &'static str| {
        with_json(move |json| json[part]["type"] = kind.into())
    };
    for (files, expected) in [
        (bare, "tokenizer.json: is missing, and vocab.txt too"),
        (
            kind("model", "WordLevel"),
            "model 'WordLevel' is not supported",
        ),
        (
            kind("normalizer", "Nmt"),
            "normalizer 'Nmt' is not supported",
        ),
        (
            kind("pre_tokenizer", "UnicodeScripts"),
            "pre_tokenizer 'UnicodeScripts'",
        ),
        (kind("post_processor", "Other"), "post_processor 'Other'"),
        (
            with_json(|json| {
                let regex = json!({ "Regex": "[a-f]+" });
                json["normalizer"] = json!({ "type": "Replace", "pattern": regex, "content": "" });
            }),
            "normalizer.pattern.Regex '[a-f]+'",
        ),
    ] {
        let embedder = files.open(&gpu, Storage::F32).unwrap();
        let error = embedder.embed("a").wait().unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("embed_ids"),
            "{error}"
        );
        assert_eq!(embedder.embed_ids(&[2, 5, 3]).wait().unwrap().len(), 64);
    }
}

#[test]
fn a_vocabulary_that_makes_no_sense_is_refused() {
    let gpu = gpu();
    let added = |key: &'static str, value: Value| {
        with_json(move |json| json["added_tokens"][1][key] = value)
    };
    let mut long = folder(&TINY, Dtype::F32);
    let lines = [long.get("vocab.txt"), b"more\n"].concat();
    long.set("vocab.txt", lines);
    let mut short = folder(&TINY, Dtype::F32);
    short.set("vocab.txt", "[PAD]\n[UNK]\n[SEP]\n");
    let mut no_json = folder(&TINY, Dtype::F32);
    no_json.set("tokenizer.json", "{\"model\":");
    for (files, expected) in [
        (
            long,
            "vocab.txt: has the id 128, but vocab_size of config.json is 128",
        ),
        (short, "vocab.txt: the vocabulary has no token '[CLS]'"),
        (
            no_json,
            "tokenizer.json: cannot be read as JSON: it ends too early",
        ),
        (
            with_json(|json| json["model"]["vocab"]["fog"] = 4_000_000_000_u64.into()),
            "id 4000000000 of 'fog' is no id",
        ),
        (
            with_json(|json| json["model"]["vocab"]["fog"] = (-1).into()),
            "id -1 of 'fog' is no id",
        ),
        (
            with_json(|json| json["model"]["vocab"] = 3.into()),
            "vocab must be ids by token",
        ),
        (
            with_json(|json| json["model"]["unk_token"] = "?!".into()),
            "the vocabulary has no token '?!'",
        ),
        (
            with_json(|json| json["model"]["vocab"]["fog"] = 128.into()),
            "tokenizer.json: has the id 128, but vocab_size",
        ),
        (added("content", "".into()), "an added token is empty"),
    ] {
        let error = files.open(&gpu, Storage::F32).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  is not {expected}");
    }
}

#[test]
fn an_added_token_that_the_model_has_no_row_for_is_text() {
    let gpu = gpu();
    let has = with_json(|json| {
        json["added_tokens"][1]["content"] = "<new>".into();
        json["added_tokens"][1]["id"] = 128.into();
    });
    let has_not = with_json(|json| {
        json["added_tokens"].as_array_mut().unwrap().remove(1);
    });
    let [has, has_not] = [has, has_not].map(|files| {
        let embedder = files.open(&gpu, Storage::F32).unwrap();
        embedder.ids("the <new> cat").unwrap()
    });
    assert_eq!(has, has_not);
    assert!(has.len() > 5 && has.iter().all(|id| *id < 128));
}

#[test]
fn a_text_without_tokens_is_refused() {
    let bare = with_json(|json| {
        json["post_processor"] = Value::Null;
        json["truncation"] = Value::Null;
    });
    let gpu = gpu();
    let embedder = bare.open(&gpu, Storage::F32).unwrap();
    assert_eq!(embedder.embed("cat").wait().unwrap().len(), 64);
    for text in ["", " "] {
        for error in [
            embedder.embed(text).wait().unwrap_err(),
            embedder.compute(text).unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::InvalidInput);
            assert!(error.to_string().contains("no tokens"), "{error}");
        }
    }
}

/// A `tokenizer.json` of SentencePiece's Unigram, with a few words.
fn unigram() -> String {
    let pieces = ["<s>", "</s>", "<unk>", "▁", "▁the", "▁cat", "s", "é", "!"];
    let vocab = pieces
        .iter()
        .zip([0.0, 0.0, 0.0, -4.0, -2.0, -2.0, -3.0, -3.0, -3.0]);
    let end = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let tokenizer = json!({
        "normalizer": { "type": "NFC" },
        "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" },
        "post_processor": { "type": "TemplateProcessing",
            "single": [end("<s>"), { "Sequence": { "id": "A", "type_id": 0 } }, end("</s>")],
            "special_tokens": {} },
        "model": { "type": "Unigram", "unk_id": 2, "vocab": vocab.collect::<Vec<_>>() },
    });
    tokenizer.to_string()
}

#[test]
fn tokens_are_told_with_their_places_in_the_text() {
    let gpu = gpu();
    let wordpiece = tiny(&gpu);
    let mut files = folder(&TINY, Dtype::F32);
    files.set("tokenizer.json", unigram());
    let sentencepiece = files.open(&gpu, Storage::F32).unwrap();
    files.set("sentence_bert_config.json", r#"{ "do_lower_case": true }"#);
    let lowering = files.open(&gpu, Storage::F32).unwrap();
    type Case<'a> = (&'a Embedder, &'a str, &'a [&'a str]);
    let cases: [Case<'_>; 5] = [
        (&wordpiece, "the ☃, cat", &["", "the", "☃", ",", "cat", ""]),
        (&wordpiece, "", &["", ""]),
        (
            &sentencepiece,
            "the cats!",
            &["", "the", " cat", "s", "!", ""],
        ),
        (
            &sentencepiece,
            "The e\u{301}",
            &["", "T", "The", " ", "e", ""],
        ),
        (
            &lowering,
            "THE İ Cats",
            &["", "THE", " ", "İ", " Cat", "s", ""],
        ),
    ];
    for (embedder, text, expected) in cases {
        let tokens = embedder.tokenize(text).unwrap();
        assert_eq!(tokens.ids, embedder.ids(text).unwrap(), "{text:?}");
        let found: Vec<&str> = tokens
            .offsets
            .iter()
            .map(|(from, to)| &text[*from as usize..*to as usize])
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }
    let mut bare = folder(&TINY, Dtype::F32);
    bare.0.retain(|(name, _)| name != "vocab.txt");
    let error = bare
        .open(&gpu, Storage::F32)
        .unwrap()
        .tokenize("a")
        .unwrap_err();
    assert!(error.to_string().contains("vocab.txt"), "{error}");
}

/// Texts of many lengths, all different.
fn corpus(count: usize) -> impl Iterator<Item = String> {
    let words = ["the", "cat", "dog", "sat", "ran", "on", "in", "fog", "mat"];
    (0..count).map(move |k| {
        let words: Vec<&str> = (0..k % 17).map(|i| words[(k * 7 + i * i) % 9]).collect();
        format!("{k} {}", words.join(" "))
    })
}

#[test]
fn a_corpus_comes_back_in_order() {
    for gpu in both_manual() {
        let embedder = tiny(&gpu);
        let many: Vec<Vec<f32>> = embedder
            .embed_many(corpus(700))
            .wait()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(many.len(), 700);
        assert!(gpu.stats().batches > 2, "all of it was on its way at once");
        for k in [0, 1, 16, 333, 699] {
            let text = corpus(700).nth(k).unwrap();
            let alone = embedder.embed(&text);
            gpu.flush();
            assert_eq!(many[k], alone.wait().unwrap(), "text {k}");
        }
    }
}

#[test]
fn an_error_in_a_corpus_is_one_of_its_results() {
    let gpu = open(EngineChoice::Cpu, manual());
    let embedder = rejecting(&gpu);
    let long = "a ".repeat(50);
    let texts = ["a", &long, "b", "", &long];
    let results: Vec<bool> = embedder
        .embed_many(texts)
        .wait()
        .map(|result| result.is_ok())
        .collect();
    assert_eq!(results, [true, false, true, true, false]);
}

#[test]
fn a_dropped_corpus_is_given_up() {
    let gpu = open(EngineChoice::Cpu, manual());
    let embedder = tiny(&gpu);
    let mut taken = 0;
    let texts = corpus(100_000).inspect(|_| taken += 1);
    let mut results = embedder.embed_many(texts).wait();
    results.next().unwrap().unwrap();
    drop(results);
    assert!(taken < 4000, "{taken} texts were taken for one");
    assert_eq!(gpu.stats().pending, 0);
}

#[test]
fn a_corpus_is_split_whatever_the_programs_pool_does() {
    in_time(|| {
        let embedder = tiny(&gpu());
        let [busy, done] = [(); 2].map(|()| Barrier::new(rayon::current_num_threads() + 1));
        thread::scope(|scope| {
            scope.spawn(|| {
                rayon::broadcast(|_| {
                    busy.wait();
                    done.wait();
                })
            });
            busy.wait();
            let vectors = embedder.embed_many(["the cat sat"; 100]).wait();
            assert_eq!(vectors.filter(Result::is_ok).count(), 100);
            done.wait();
        });
    });
}
