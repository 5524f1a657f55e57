import { type ReactNode, useState } from 'react';
import { api } from '../../api/client.js';
import { Read } from '../../parts/read.js';

/** What the platform gave beside the notes; read when it is opened, since that is kept in the audit trail. */
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
          {(insights) => <pre>{JSON.stringify(insights, null, 2)}</pre>}
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

/** Who said what; as it came where it is shaped otherwise. */
function Transcript({ transcript }: { transcript: unknown }) {
  const spoken = spokenOf(transcript);
  if (!spoken) return <pre>{JSON.stringify(transcript, null, 2)}</pre>;
  return (
    <ol className="plain note-text spoken">
      {spoken.map(({ speaker, text }, at) => (
        <li key={at}>
          <strong>{speaker}</strong> <span>{text}</span>
        </li>
      ))}
    </ol>
  );
}

interface Spoken {
  speaker: string;
  text: string;
}

/** The utterances of a transcript, which is shown as the platform gave it; undefined where it is shaped otherwise. */
function spokenOf(transcript: unknown): Spoken[] | undefined {
  const { utterances } = (transcript ?? {}) as { utterances?: unknown };
  return Array.isArray(utterances) && utterances.every(isSpoken) ? utterances : undefined;
}

const isSpoken = (utterance: Partial<Spoken> | null): utterance is Spoken =>
  typeof utterance?.speaker === 'string' && typeof utterance.text === 'string';
