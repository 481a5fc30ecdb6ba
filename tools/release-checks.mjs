// What manifests, changelog and documents must agree on before a release.
//
// The checks only read, and build nothing: `problems` says what a person has to mend, each
// with how. tools/release.mjs goes on to the packages.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { cargoField, repositoryAddress, staleDocuments } from "./address.mjs";

/** An address that a path can be put behind. */
const ADDRESS = /^https:\/\/[\w.-]+(\/[\w.-]+){2,}$/;

/** The version to be released, which is that of the crate. */
export function version(root) {
  return cargoField(read(root, "Cargo.toml"), "version");
}

/** What is wrong in `root`, on the day `today` (YYYY-MM-DD). */
export function problems(root, today) {
  const crate = version(root);
  return [
    ...addressProblems(root),
    ...npmProblems(crate, JSON.parse(read(root, "pkg-template/package.json"))),
    ...changelogProblems(crate, read(root, "CHANGELOG.md"), today),
  ];
}

function addressProblems(root) {
  const address = repositoryAddress(root);
  if (address === "") {
    return [
      "the address of the repository is unknown: give it to `repository` in Cargo.toml, then run `node tools/address.mjs`",
    ];
  }
  if (!ADDRESS.test(address) || address.endsWith(".git")) {
    return [
      `\`repository\` in Cargo.toml is "${address}": write it as https://HOST/OWNER/NAME, with nothing behind it`,
    ];
  }
  return staleDocuments(root).map(
    ({ name }) =>
      `${name} links to another repository than Cargo.toml names: run \`node tools/address.mjs\``,
  );
}

function npmProblems(crate, npm) {
  if (npm.version === crate) return [];
  return [
    `Cargo.toml has version ${crate} and pkg-template/package.json ${npm.version}: give both the version to be released`,
  ];
}

function changelogProblems(crate, changelog, today) {
  const [unreleased, newest] = newestSections(changelog);
  const section = `"## [${crate}] - ${today}"`;
  if (newest === undefined) {
    return [
      `CHANGELOG.md names no version: begin a section ${section}, with what is [Unreleased]`,
    ];
  }
  const found = [];
  if (/^[-*] /m.test(unreleased?.body ?? "")) {
    found.push(
      `CHANGELOG.md has lines under [Unreleased], which would be released unnamed: move them below ${section}`,
    );
  }
  if (newest.title !== crate) {
    found.push(
      `the newest version in CHANGELOG.md is ${newest.title} and the crate's ${crate}: write its section, or mend the version in Cargo.toml`,
    );
  }
  if (!/^[-*] /m.test(newest.body)) {
    found.push(
      `CHANGELOG.md says nothing of ${newest.title}: write what changed for its users`,
    );
  }
  if (!isDay(newest.date) || newest.date > today) {
    found.push(
      `CHANGELOG.md dates ${newest.title} "${newest.date}": give the day of the release, as in "## [${newest.title}] - ${today}"`,
    );
  }
  return found;
}

/** The section of what is unreleased, if there is one, and the first of a version. */
function newestSections(changelog) {
  const sections = changelog
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [, title, date] = /^\[?([^\]\s]+)\]?(?: - )?(.*)\n/.exec(section);
      return { title, date, body: section };
    });
  const isUnreleased = ({ title }) => title === "Unreleased";
  return [
    sections.find(isUnreleased),
    sections.find((section) => !isUnreleased(section)),
  ];
}

/** Whether a text is a day of the calendar. */
function isDay(text) {
  const time = Date.parse(`${text}T00:00:00Z`);
  return (
    /^\d{4}-\d{2}-\d{2}$/.test(text) &&
    !Number.isNaN(time) &&
    new Date(time).toISOString().startsWith(text)
  );
}

function read(root, name) {
  return readFileSync(join(root, name), "utf8");
}
