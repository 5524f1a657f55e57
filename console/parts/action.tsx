import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { queries } from '../api/queries.js';
import { ErrorNote } from './notes.js';

/** A change at the service; afterwards what is on the screen is read again. */
export function useAction<I = void, T = unknown>(run: (input: I) => Promise<T>): UseMutationResult<T, Error, I> {
  return useMutation({
    mutationFn: run,
    onSuccess: () => queries.invalidateQueries({ predicate: ({ queryKey: [name] }) => name !== 'session' }),
  });
}

/** A button that does something at once. */
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

/** A button that says what it will do, and asks for what that needs, before it does it. */
export function ConfirmedAction<T>(props: {
  label: string;
  title: string;
  /** What will happen, and to how much; fields of a form where something is to be said. */
  children: ReactNode;
  /** @param given the fields by their names */
  run: (given: FormData) => Promise<T>;
  onDone?: (result: T) => void;
  isDangerous?: boolean;
  /** The main thing to do on its page. */
  isPrimary?: boolean;
}) {
  const { label, title, children, run, onDone, isDangerous, isPrimary } = props;
  const [isOpen, setOpen] = useState(false);
  // The result may be shown only once, so it is handed on before the list is read again, which may remove this button.
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
          close="Not now"
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

/** A modal dialog of the browser's own with a form: it keeps the focus, and Escape closes it unless it is kept. */
export function Dialog(props: {
  title: string;
  /** What the button is called that closes it, and where it has others, those. */
  close: string;
  /** What it shows can't be shown again, so that its button alone closes it. */
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
    // Who uses the keyboard goes on where the dialog was opened.
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
