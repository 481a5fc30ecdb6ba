// What stops a release, tried on copies of the papers.
//
// The parts that build and pack are not run here: `make release` runs them.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import {
  DOCUMENTS,
  linked,
  npmFields,
  repositoryAddress,
  staleDocuments,
} from "../../tools/address.mjs";

const RELEASE = resolve("tools/release.mjs");
const FILL_IN = resolve("tools/address.mjs");
const ADDRESS = "https://example.com/owner/name";
const PAPERS = [
  "Cargo.toml",
  "CHANGELOG.md",
  "pkg-template/package.json",
  ...DOCUMENTS,
];
const TODAY = new Date().toISOString().slice(0, 10);
const CHANGELOG = `# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - ${TODAY}\n\n### Added\n\n- All of it.\n`;

/** Papers of which a release could be made. */
function ready(t) {
  const root = mkdtempSync(join(tmpdir(), "framebatch-release-"));
  t.after(() => rmSync(root, { recursive: true }));
  const papers = {
    root,
    edit(name, change) {
      const file = join(root, name);
      writeFileSync(file, change(readFileSync(file, "utf8")));
    },
    release: (...parts) =>
      spawnSync("node", [RELEASE, ...parts], { cwd: root, encoding: "utf8" }),
    fillIn: () => spawnSync("node", [FILL_IN], { cwd: root, encoding: "utf8" }),
  };
  for (const name of PAPERS) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    cpSync(name, join(root, name));
  }
  papers.edit("Cargo.toml", (text) =>
    text
      .replace(/^version = .*$/m, 'version = "0.1.0"')
      .replace(/^repository = .*$/m, `repository = "${ADDRESS}"`),
  );
  papers.edit("pkg-template/package.json", (text) =>
    text.replace(/"version": ".*"/, '"version": "0.1.0"'),
  );
  papers.edit("CHANGELOG.md", () => CHANGELOG);
  papers.fillIn();
  return papers;
}

test("papers that agree pass", (t) => {
  const { status, stdout, stderr } = ready(t).release("papers");
  assert.equal(stderr, "");
  assert.equal(status, 0);
  assert.equal(stdout, `papers 0.1.0, ${ADDRESS}\n`);
});

const address = (text) => (toml) =>
  toml.replace(/^repository = .*$/m, `repository = "${text}"`);
const STOPS = [
  {
    name: "an address that is not known yet",
    file: "Cargo.toml",
    change: address(""),
    says: /give it to `repository` in Cargo\.toml/,
  },
  {
    name: "an address with something behind it",
    file: "Cargo.toml",
    change: address(`${ADDRESS}.git`),
    says: /write it as https:\/\/HOST\/OWNER\/NAME/,
  },
  {
    name: "an address that the documents do not have",
    file: "Cargo.toml",
    change: address(`${ADDRESS}-moved`),
    says: /SECURITY\.md links to another repository.*run `node tools\/address\.mjs`/,
  },
  {
    name: "another version of the npm package",
    file: "pkg-template/package.json",
    change: (text) => text.replace('"0.1.0"', '"0.2.0"'),
    says: /Cargo\.toml has version 0\.1\.0 and pkg-template\/package\.json 0\.2\.0: give both/,
  },
  {
    name: "another version of the crate",
    file: "Cargo.toml",
    change: (text) => text.replace('version = "0.1.0"', 'version = "0.2.0"'),
    says: /the newest version in CHANGELOG\.md is 0\.1\.0 and the crate's 0\.2\.0: write its section/,
  },
  {
    name: "a changelog without a version",
    file: "CHANGELOG.md",
    change: () => "# Changelog\n\n## [Unreleased]\n",
    says: /names no version: begin a section "## \[0\.1\.0\]/,
  },
  {
    name: "a changelog with lines that are in no version",
    file: "CHANGELOG.md",
    change: (text) =>
      text.replace("[Unreleased]\n", "[Unreleased]\n\n- Another.\n"),
    says: /lines under \[Unreleased\].*move them/,
  },
  {
    name: "a version of which nothing is said",
    file: "CHANGELOG.md",
    change: (text) => text.replace("- All of it.\n", ""),
    says: /says nothing of 0\.1\.0: write what changed/,
  },
  ...["", "soon", "2026-02-30", "9999-01-01"].map((date) => ({
    name: `a version of the day "${date}"`,
    file: "CHANGELOG.md",
    change: (text) => text.replace(` - ${TODAY}`, date && ` - ${date}`),
    says: /dates 0\.1\.0 ".*": give the day of the release/,
  })),
];

for (const { name, file, change, says } of STOPS) {
  test(`a release stops at ${name}`, (t) => {
    const papers = ready(t);
    papers.edit(file, change);
    const { status, stdout, stderr } = papers.release("papers", "tree");
    assert.equal(status, 1);
    assert.match(stderr, says);
    assert.equal(stdout, "");
  });
}

test("all that is wrong is told at once", (t) => {
  const papers = ready(t);
  papers.edit("Cargo.toml", address(""));
  papers.edit("CHANGELOG.md", () => "# Changelog\n");
  const { stderr } = papers.release("papers");
  assert.equal(stderr.trimEnd().split("\n").length, 2, stderr);
});

test("a release stops at what is not committed, and at a version that is tagged", async (t) => {
  const { root, edit, release } = ready(t);
  const git = (...args) =>
    promisify(execFile)("git", args, {
      cwd: root,
      env: {
        ...process.env,
        ...{ GIT_AUTHOR_NAME: "test", GIT_AUTHOR_EMAIL: "test@example.com" },
        ...{ GIT_COMMITTER_NAME: "test" },
        ...{ GIT_COMMITTER_EMAIL: "test@example.com" },
      },
    });
  await git("init", "--quiet");
  await git("add", ".");
  await git("commit", "--quiet", "--message", "All");
  assert.equal(release("tree").status, 0);

  edit("README.md", (text) => `${text}\nMore.\n`);
  const dirty = release("tree");
  assert.equal(dirty.status, 1);
  assert.match(dirty.stderr, /commit what would be published:\n M README\.md/);

  await git("commit", "--quiet", "--all", "--message", "More");
  await git("tag", "v0.1.0");
  const tagged = release("tree");
  assert.equal(tagged.status, 1);
  assert.match(tagged.stderr, /a tag v0\.1\.0 already.*take another/);
});

test("a part that does not exist is named", (t) => {
  const { status, stderr } = ready(t).release("paper");
  assert.equal(status, 1);
  assert.match(stderr, /no part 'paper'; there are papers, tree/);
});

test("the documents take the address, and give it back", (t) => {
  const papers = ready(t);
  const link = `[security advisories](${ADDRESS}/security/advisories/new)`;
  const security = () => readFileSync(join(papers.root, "SECURITY.md"), "utf8");
  assert.ok(security().includes(link));
  for (const moved of [`${ADDRESS}-moved`, ""]) {
    papers.edit("Cargo.toml", address(moved));
    papers.fillIn();
    assert.equal(security().includes(`(${moved}/security`), moved !== "");
    assert.ok(!security().includes(link));
  }
  assert.equal(security(), linked(readFileSync("SECURITY.md", "utf8"), ""));
});

test("the documents have the address of Cargo.toml, and both packages do", () => {
  const stale = staleDocuments(".").map(({ name }) => name);
  assert.deepEqual(stale, [], "run `node tools/address.mjs`");
  const { homepage, bugs, repository } = JSON.parse(
    readFileSync("pkg/package.json", "utf8"),
  );
  const fields = Object.entries({ homepage, bugs, repository });
  assert.deepEqual(
    Object.fromEntries(fields.filter(([, field]) => field !== undefined)),
    npmFields(repositoryAddress(".")),
  );
});

test("an address reaches npm in the form that it asks for", () => {
  assert.deepEqual(npmFields(ADDRESS), {
    homepage: `${ADDRESS}#readme`,
    bugs: `${ADDRESS}/issues`,
    repository: {
      type: "git",
      url: `git+${ADDRESS}.git`,
      directory: "pkg-template",
    },
  });
});
