import { Component, type ReactNode } from 'react';
import { NotebridgeError } from '../../client/notebridge-error.js';
import { labelOfField } from './field.js';
import { ScriptMissing } from './script.js';

/** An error in the words of the service. A missing thing is not retried. */
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

/** Names the field by its label, if the page has it. */
function sentenceOf(error: Error): string {
  const [fault] = (error instanceof NotebridgeError && error.more.errors) || [];
  const label = fault && labelOfField(fault.pointer.slice(1));
  return label ? `The field “${label}” is invalid: ${fault.detail}.` : error.message;
}

/** Names the values that cannot be decrypted. */
export function NotShown({ parts }: { parts: readonly string[] | undefined }) {
  return (
    parts && (
      <p>
        <strong>Not shown:</strong> {parts.join(', ')}. The stored values cannot be decrypted: ask an operator.
      </p>
    )
  );
}

/** Shown instead of a page or an action for which the caller lacks a scope. */
export function LacksScope({ scope }: { scope: string }) {
  return (
    <p className="note">
      You need the scope <code>{scope}</code> for this. Ask your administrator for it.
    </p>
  );
}

/** Shown until the content is loaded. */
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
