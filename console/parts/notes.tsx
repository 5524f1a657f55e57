import { Component, type ReactNode } from 'react';
import { NotebridgeError } from '../../client/notebridge-error.js';
import { labelOfField } from './field.js';
import { ScriptMissing } from './script.js';

/** What went wrong, in the sentence of whoever refused it; that something is not there is no fault to be tried again. */
export function ErrorNote({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const isAbsent = error instanceof NotebridgeError && error.status === 404;
  const retry = error instanceof ScriptMissing ? () => location.reload() : onRetry;
  return (
    <div className={isAbsent ? 'note' : 'note error'} role="alert">
      <p>{sentenceOf(error)}</p>
      {retry && !isAbsent && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A field is called what the page calls it; what the page has no field for, as the API does. */
function sentenceOf(error: Error): string {
  const [fault] = (error instanceof NotebridgeError && error.more.errors) || [];
  const label = fault && labelOfField(fault.pointer.slice(1));
  return label ? `The field “${label}” is not acceptable: ${fault.detail}.` : error.message;
}

/** Said instead of what somebody may not see or do. */
export function LacksScope({ scope }: { scope: string }) {
  return (
    <p className="note">
      You may not see this page: it needs the scope <code>{scope}</code>. Ask your administrator.
    </p>
  );
}

/** Said until something is there. */
export function Waiting() {
  return <p className="quiet waiting">Loading…</p>;
}

/** Keeps the navigation when a page fails. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <ErrorNote error={error} onRetry={() => this.setState({ error: null })} />;
  }
}
