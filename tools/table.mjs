// Prints a table of texts, the first row its head: words to the left, numbers to the right.

export function printTable(rows) {
  const widths = rows[0].map((_, column) =>
    Math.max(...rows.map((row) => row[column].length)),
  );
  const isNumber = rows[0].map((_, column) =>
    /^[\d.,]+$/.test(rows.at(-1)[column]),
  );
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      isNumber[column]
        ? cell.padStart(widths[column])
        : cell.padEnd(widths[column]),
    );
    console.log(cells.join("  ").trimEnd());
  }
}
