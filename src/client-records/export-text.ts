/** A named section of an export: one item, or a list that may exceed memory. */
export interface Section {
  name: string;
  isList: boolean;
  items: AsyncIterable<object>;
}

/** Writes sections as one JSON object, which ends with `complete` so that a truncated export is recognisable. */
export async function* exportText(sections: readonly Section[]): AsyncGenerator<string> {
  let text = '{';
  for (const { name, isList, items } of sections) {
    text += `${text === '{' ? '' : ',\n'}${JSON.stringify(name)}: ${isList ? '[' : ''}`;
    let before = '';
    for await (const item of items) {
      yield `${text}${before}${JSON.stringify(item)}`;
      text = '';
      before = ',\n';
    }
    if (isList) text += ']';
  }
  yield `${text},\n"complete": true}\n`;
}
