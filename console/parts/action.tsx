import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { queries } from '../api/queries.js';
import { ErrorNote } from './notes.js';

/** A change at the service, after which everything on the screen is read again. */
export function useAction<I = void, T = unknown>(run: (input: I) => Promise<T>): UseMutationResult<T, Error, I> {
  return useMutation({
    mutationFn: run,
    onSuccess: () => queries.invalidateQueries({ predicate: ({ queryKey: [name] }) => name !== 'session' }),
  });
}

/** A button that acts immediately. */
export function ActionButton(props: {
  label: string;
  done?: string;
  isPrimary?: boolean;
  run: () => Promise<unknown>;
}) {
  const { label, done, isPrimary, run } = props;
  const action = useAction(run);
  return (
    <>
      <button
        type="button"
        className={isPrimary ? 'primary' : undefined}
        disabled={action.isPending}
        onClick={() => action.mutate()}
      >
        {label}
      </button>
      {action.isSuccess && done && <span role="status">{done}</span>}
      {action.error && <ErrorNote error={action.error} />}
    </>
  );
}

/** A button that opens a dialog, which explains the action and asks for its input. */
export function ConfirmedAction<T>(props: {
  label: string;
  title: string;
  /** The effect, and the number of items that it affects; the fields of the form, if any. */
  children: ReactNode;
  /** @param given the fields by their names */
  run: (given: FormData) => Promise<T>;
  onDone?: (result: T) => void;
  isDangerous?: boolean;
  /** The main action of its page. */
  isPrimary?: boolean;
  /** The label of the button that closes the dialog. */
  close?: string;
}) {
  const { label, title, children, run, onDone, isDangerous, isPrimary } = props;
  const [isOpen, setOpen] = useState(false);
  // The result may be shown only once, so it is passed on before the list is read again, which may remove this button.
  const action = useAction(async (given: FormData) => {
    const result = await run(given);
    setOpen(false);
    onDone?.(result);
  });
  const close = () => {
    setOpen(false);
    action.reset();
  };
  return (
    <>
      <button
        type="button"
        className={isDangerous ? 'danger' : isPrimary ? 'primary' : undefined}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && (
        <Dialog
          title={title}
          close={props.close ?? 'Cancel'}
          buttons={
            <button type="submit" className={isDangerous ? 'danger' : 'primary'} disabled={action.isPending}>
              {label}
            </button>
          }
          onClose={close}
          onSubmit={(given) => action.mutate(given, { onSuccess: action.reset })}
        >
          {children}
          {action.error && <ErrorNote error={action.error} />}
        </Dialog>
      )}
    </>
  );
}

/** A native modal dialog with a form. It keeps the focus, and Escape closes it unless it is kept. */
export function Dialog(props: {
  title: string;
  /** The label of the button that closes it. */
  close: string;
  /** Only its button closes it, because its content cannot be shown again. */
  isKept?: boolean;
  buttons?: ReactNode;
  onClose: () => void;
  /** @param given the fields in it by their names */
  onSubmit?: (given: FormData) => void;
  onChange?: () => void;
  children: ReactNode;
}) {
  const { title, close, isKept, buttons, onClose, onSubmit, onChange, children } = props;
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    if (!place.current?.open) place.current?.showModal();
    // The focus returns to where the dialog was opened.
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={place}
      aria-label={title}
      closedby={isKept ? 'none' : undefined}
      onCancel={(event) => isKept && event.preventDefault()}
      onClose={onClose}
    >
      <h2>{title}</h2>
      <form
        onChange={onChange}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.(new FormData(event.currentTarget));
        }}
      >
        {children}
        <div className="buttons">
          <button type="button" onClick={onClose}>
            {close}
          </button>
          {buttons}
        </div>
      </form>
    </dialog>
  );
}
