import { useNames } from '../../people/names.js';
import { PersonLink } from '../../people/person-link.js';
import { AnyValue, RawValue } from './any-value.js';
import type { PeopleByKey } from './insights.js';
import { clock, restOf } from './measures.js';

interface Utterance {
  speaker: string;
  text: string;
  start?: unknown;
}

/** The utterances by speaker; everything as it is if the transcript has another form. */
export function Transcript({ transcript }: { transcript: object & { speakers: PeopleByKey } }) {
  const { speakers, ...returned } = transcript;
  const labels = Object.keys(speakers);
  const names = useNames(Object.values(speakers));
  const nameOf = (label: string): string => {
    const at = labels.indexOf(label);
    return names[at] || speakers[label]?.externalId || `Speaker ${label}`;
  };
  const lines = utterancesOf(returned);
  const rest = restOf(returned, 'utterances', 'speakerMapping');
  if (!lines) return <AnyValue value={returned} />;
  return (
    <>
      <ul className="plain" aria-label="Speakers">
        {Object.entries(speakers).map(([label, person]) => (
          <li key={label}>
            Speaker {label}: <PersonLink person={person} /> <span className="quiet">({person.kind})</span>
          </li>
        ))}
      </ul>
      <ol className="plain note-text spoken">
        {lines.map(({ speaker, text, start }, at) => (
          <li key={at}>
            <span>
              <strong>{nameOf(speaker)}</strong>{' '}
              {typeof start === 'number' && <span className="quiet">{clock(start)}</span>}
            </span>
            <span>{text}</span>
          </li>
        ))}
      </ol>
      {Object.keys(rest).length > 0 && <AnyValue value={rest} />}
      <RawValue value={returned} />
    </>
  );
}

/** The utterances of a transcript; undefined if it has another form. */
function utterancesOf(transcript: { utterances?: unknown }): Utterance[] | undefined {
  const { utterances } = transcript;
  return Array.isArray(utterances) && utterances.every(isUtterance) ? utterances : undefined;
}

const isUtterance = (utterance: Partial<Utterance> | null): utterance is Utterance =>
  typeof utterance?.speaker === 'string' && typeof utterance.text === 'string';
