import type { Schemas } from '../../api/client.js';
import { Moment } from '../../parts/values.js';
import { type OutlineItem, outlineOf } from './note-outline.js';

type Version = Pick<Schemas['RevisionResponse'], 'notes' | 'removedAt' | 'unreadable'>;

/** The notes of one version; each text is shown as it is, never as markup. */
export function NoteText({ version: { notes, removedAt, unreadable } }: { version: Version }) {
  if (unreadable)
    return <p className="quiet">These notes can’t be shown: what is stored of them was changed or moved.</p>;
  if (removedAt)
    return (
      <p className="quiet">
        These notes are kept no longer, since <Moment at={removedAt} exact />.
      </p>
    );
  return outlineOf(notes).map(({ title, items }) => (
    <section key={title} className="note-text">
      <h4>{title}</h4>
      <Items items={items} />
    </section>
  ));
}

/** Paragraphs, with neighbouring list items in one list. */
function Items({ items }: { items: readonly OutlineItem[] }) {
  const blocks: OutlineItem[][] = [];
  for (const item of items) {
    const last = blocks.at(-1);
    if (item.isListed && last?.[0]?.isListed) last.push(item);
    else blocks.push([item]);
  }
  return blocks.map((block, at) =>
    block[0]?.isListed ? (
      <ul key={at}>
        {block.map((item, place) => (
          <li key={place}>
            {item.text}
            <Items items={item.items} />
          </li>
        ))}
      </ul>
    ) : (
      <p key={at}>{block[0]?.text}</p>
    ),
  );
}
