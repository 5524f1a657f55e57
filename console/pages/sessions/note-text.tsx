import type { Schemas } from '../../api/client.js';
import { Moment } from '../../parts/values.js';
import { type OutlineItem, outlineOf } from './note-outline.js';

type Version = Pick<Schemas['RevisionResponse'], 'notes' | 'removedAt' | 'unreadable'>;

/** The notes of one version; texts are never rendered as markup. */
export function NoteText({ version: { notes, removedAt, unreadable } }: { version: Version }) {
  if (unreadable) return <p className="quiet">These notes cannot be shown: their stored value was changed or moved.</p>;
  if (removedAt)
    return (
      <p className="quiet">
        These notes were removed on <Moment at={removedAt} exact />.
      </p>
    );
  return outlineOf(notes).map(({ title, items }) => (
    <section key={title} className="note-text">
      <h4>{title}</h4>
      <Items items={items} />
    </section>
  ));
}

/** A note template by its name, or by its id without one. */
export function Template({ id, name }: { id: string; name: string | null }) {
  return name === null ? <code>{id}</code> : <span title={id}>{name}</span>;
}

/** Paragraphs, with adjacent list items in one list. */
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
