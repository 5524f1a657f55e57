/** A part of an export: its name, and its one item or its list of them, which may be longer than memory is large. */
export interface Section {
  name: string;
  /** Of a list, the name of one item. */
  item?: string;
  items: AsyncIterable<object>;
}

/** Parts as one JSON object; `complete` stands at its end, so that one that broke off is known by its lack. */
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

/** Parts as lines of JSON, each with its kind; the last one is `{"kind":"complete"}`. */
export async function* asLines(sections: readonly Section[]): AsyncGenerator<string> {
  for (const { name, item = name, items } of sections) {
    for await (const value of items) yield `${JSON.stringify({ kind: item, ...value })}\n`;
  }
  yield '{"kind":"complete"}\n';
}
