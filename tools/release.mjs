// Holds that the crate and the npm package are ready to be published, and says what a
// person then does. It publishes nothing and changes no file of the repository.
//
//   node tools/release.mjs                 all of it; needs `make build`
//   node tools/release.mjs papers tree     those parts, by their names
//
// papers: versions, changelog and the repository's address agree (tools/release-checks.mjs)
// tree:   what would be published is committed, and its version has no tag yet
// npm:    what npm packs: its list, publint, its types, its sizes
// oldest: the crate compiles with the Rust that it names
// crate:  what cargo packs compiles by itself, and a registry would take it
//
// What needs a browser or a GPU is the business of `make test` and `make long`.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { cargoField, repositoryAddress } from "./address.mjs";
import { problems, version } from "./release-checks.mjs";

/** Where the npm package lies that was looked at and is to be published. */
const PACKED = "target/published";

const PARTS = {
  papers() {
    const found = problems(".", new Date().toISOString().slice(0, 10));
    if (found.length > 0) stop(found);
    return `${version(".")}, ${repositoryAddress(".")}`;
  },

  tree() {
    const changed = read("git", ["status", "--porcelain"]).trimEnd();
    if (changed !== "") {
      stop([`commit what would be published:\n${changed}`]);
    }
    const tag = `v${version(".")}`;
    if (read("git", ["tag", "--list", tag]).trim() !== "") {
      stop([
        `there is a tag ${tag} already: that version is published, take another`,
      ]);
    }
    return read("git", ["rev-parse", "HEAD"]).trim();
  },

  npm() {
    run("node", [
      ...["--test", "--test-reporter=spec"],
      "tests/packaging/lists.test.mjs",
      "tests/packaging/types.test.mjs",
    ]);
    mkdirSync(PACKED, { recursive: true });
    const [packed] = JSON.parse(
      read("npm", [
        ...["pack", "./pkg", "--json", "--silent"],
        ...["--pack-destination", PACKED],
      ]),
    );
    if (packed.version !== version(".")) {
      stop([`pkg/ holds ${packed.version}: run \`make build\``]);
    }
    return `${packed.filename}, ${packed.entryCount} files, ${packed.size} bytes`;
  },

  oldest() {
    const oldest = cargoField(
      readFileSync("Cargo.toml", "utf8"),
      "rust-version",
    );
    run("rustup", [
      ...["toolchain", "install", oldest, "--no-self-update"],
      ...["--profile", "minimal", "--target", "wasm32-unknown-unknown"],
    ]);
    const check = [`+${oldest}`, "check", "--locked", "--quiet"];
    run("cargo", [...check, "--target-dir", "target/oldest"]);
    run("cargo", [
      ...[...check, "--target-dir", "target/oldest"],
      ...["--target", "wasm32-unknown-unknown", "--package", "framebatch-core"],
    ]);
    return `Rust ${oldest}`;
  },

  crate() {
    const { stderr } = run("cargo", ["publish", "--dry-run", "--locked"]);
    // Tests and benches stay in the repository; any other warning is one to heed.
    const warnings = stderr
      .split("\n")
      .filter((line) => /^(warning|error)\b/.test(line))
      .filter((line) => !/ignoring (test|benchmark) `/.test(line))
      .filter((line) => !/aborting upload due to dry run/.test(line));
    if (warnings.length > 0) stop(warnings);
    return /Packaged (.*)/.exec(stderr)[1];
  },
};

const wanted = process.argv.slice(2);
for (const name of wanted) {
  if (PARTS[name] === undefined) {
    const known = Object.keys(PARTS).join(", ");
    stop([`there is no part '${name}'; there are ${known}`]);
  }
}
for (const [name, part] of Object.entries(PARTS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log(`${name.padEnd(6)} ${part()}`);
}
if (wanted.length === 0) tellWhatToDo();

function tellWhatToDo() {
  const released = version(".");
  const tag = `v${released}`;
  console.log(`
Both packages are ready. Nothing is published yet; with \`make test\` and \`make long\` green on this commit:

  cargo publish --locked
  npm publish ./${PACKED}/framebatch-${released}.tgz --access public
  git tag --annotate ${tag} --message "framebatch ${released}"
  git push origin ${tag}

Then make a release of ${tag} from its section of CHANGELOG.md, at ${repositoryAddress(".")}, and begin the next section, [Unreleased].`);
}

/** What a command says, once it has ended well. */
function read(command, args) {
  return execFileSync(command, args, { encoding: "utf8" });
}

/** Runs a command whose complaints are worth showing; what it says. */
function run(command, args) {
  const done = spawnSync(command, args, {
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  if (done.error) throw done.error;
  if (done.status !== 0) {
    stop([
      `\`${[command, ...args].join(" ")}\` failed:\n${done.stdout}${done.stderr}`,
    ]);
  }
  return done;
}

function stop(reasons) {
  for (const reason of reasons) console.error(`release: ${reason}`);
  process.exit(1);
}
