/** A named section of an export: one item, or a list that may exceed memory. */
export interface Section {
  name: string;
  /** The name of an item, if the section is a list. */
  item?: string;
  items: AsyncIterable<object>;
}

/** Writes sections as one JSON object, which ends with `complete` so that a truncated export is recognisable. */
export async function* asJson(sections: readonly Section[]): AsyncGenerator<string> {
  let text = '{';
  for (const { name, item, items } of sections) {
    text += `${text === '{' ? '' : ',\n'}${JSON.stringify(name)}: `;
    let before = '';
    if (item !== undefined) text += '[';
    for await (const value of items) {
      yield `${text}${before}${JSON.stringify(value)}`;
      text = '';
      before = ',\n';
    }
    if (item !== undefined) text += ']';
  }
  yield `${text},\n"complete": true}\n`;
}

/** Writes sections as lines of JSON, each with its kind. The last line is `{"kind":"complete"}`. */
export async function* asLines(sections: readonly Section[]): AsyncGenerator<string> {
  for (const { name, item = name, items } of sections) {
    for await (const value of items) yield `${JSON.stringify({ kind: item, ...value })}\n`;
  }
  yield '{"kind":"complete"}\n';
}
