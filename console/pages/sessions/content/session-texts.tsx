import { type ReactNode, useState } from 'react';
import { api } from '../../../api/client.js';
import { Read } from '../../../parts/read.js';
import { Insights } from './insights.js';
import { Transcript } from './transcript.js';

/** The transcript and insights, read only when opened because each read is audited. */
export function SessionTexts({ id }: { id: string }) {
  const params = { path: { id } };
  return (
    <>
      <Folded title="Transcript">
        <Read name={['transcript', id]} call={() => api.GET('/v1/sessions/{id}/transcript', { params })}>
          {(transcript) => <Transcript transcript={transcript} />}
        </Read>
      </Folded>
      <Folded title="Insights">
        <Read name={['insights', id]} call={() => api.GET('/v1/sessions/{id}/insights', { params })}>
          {(insights) => <Insights insights={insights} />}
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
