// How tools that resolve imports find the entries of the npm package.
//
// Modules are for everyone who knows them; CommonJS is for the rest: test runners that load
// nothing else, and what reads neither `exports` nor modules. A program never gets both of one
// entry where its tools can help it, because the two would share nothing.

/** The entries of npm's `exports`, each with the conditions by which tools choose. */
export function conditions(exports, common) {
  return Object.fromEntries(
    Object.entries(exports).map(([path, at]) => {
      const name = nameOf(at);
      return [path, name in common ? whole(at, name) : at];
    }),
  );
}

function whole({ types, default: module }, name) {
  const here = { types, default: module };
  return {
    // Node, where `require` can load modules.
    "module-sync": here,
    import: here,
    // Bundlers, where CommonJS imports the package.
    module,
    require: {
      types: types.replace("./dist/", "./cjs/"),
      default: `./cjs/${name}.js`,
    },
    default: module,
  };
}

/** For whoever knows no `exports`: a folder for each entry but the first, and its manifest. */
export function* folders(exports, common) {
  for (const [path, at] of Object.entries(exports)) {
    const name = nameOf(at);
    if (path === "." || name === undefined) continue;
    const up = (to) => to.replace("./", "../");
    const manifest = {
      main: name in common ? `../cjs/${name}.js` : up(at.default),
      module: up(at.default),
      types: up(at.types),
    };
    yield [path.slice("./".length), `${JSON.stringify(manifest, null, 2)}\n`];
  }
}

/** The name of an entry's script; undefined for what is no script. */
function nameOf(at) {
  return /^\.\/dist\/([\w-]+)\.js$/.exec(at.default ?? "")?.[1];
}
