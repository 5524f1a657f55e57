import { type ReactNode, useState } from 'react';
import { api } from '../../api/client.js';
import { Read } from '../../parts/read.js';

/** The transcript and insights, read only when opened because each read is audited. */
export function SessionTexts({ id }: { id: string }) {
  const params = { path: { id } };
  return (
    <>
      <Folded title="Transcript">
        <Read<unknown> name={['transcript', id]} call={() => api.GET('/v1/sessions/{id}/transcript', { params })}>
          {(transcript) => <Transcript transcript={transcript} />}
        </Read>
      </Folded>
      <Folded title="Insights">
        <Read<unknown> name={['insights', id]} call={() => api.GET('/v1/sessions/{id}/insights', { params })}>
          {(insights) => (
            <>
              <People people={(insights as { people: PeopleByKey }).people} />
              <pre>{JSON.stringify(insights, null, 2)}</pre>
            </>
          )}
        </Read>
      </Folded>
    </>
  );
}

function Folded({ title, children }: { title: string; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="card" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}

/** The utterances by speaker; the raw JSON if the transcript has another shape. */
function Transcript({ transcript }: { transcript: unknown }) {
  const lines = utterancesOf(transcript);
  if (!lines) return <pre>{JSON.stringify(transcript, null, 2)}</pre>;
  return (
    <>
      <People people={(transcript as { speakers: PeopleByKey }).speakers} />
      <ol className="plain note-text spoken">
        {lines.map(({ speaker, text }, at) => (
          <li key={at}>
            <strong>{speaker}</strong> <span>{text}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

type PeopleByKey = Record<string, { kind: string; externalId: string }>;

/** People by speaker label or by the platform's user id. */
function People({ people }: { people: PeopleByKey }) {
  return (
    <ul className="plain" aria-label="People">
      {Object.entries(people).map(([key, { kind, externalId }]) => (
        <li key={key}>
          <strong>{key}</strong> is {kind} {externalId}
        </li>
      ))}
    </ul>
  );
}

interface Utterance {
  speaker: string;
  text: string;
}

/** The utterances of a transcript; undefined if it has another shape. */
function utterancesOf(transcript: unknown): Utterance[] | undefined {
  const { utterances } = (transcript ?? {}) as { utterances?: unknown };
  return Array.isArray(utterances) && utterances.every(isUtterance) ? utterances : undefined;
}

const isUtterance = (utterance: Partial<Utterance> | null): utterance is Utterance =>
  typeof utterance?.speaker === 'string' && typeof utterance.text === 'string';
