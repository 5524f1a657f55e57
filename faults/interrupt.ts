const open = new Set<() => Promise<void>>();

/** Makes Ctrl-C end all that the runs have started. A repeated signal changes nothing. */
export function leaveNothingBehind(close: () => Promise<void>): void {
  open.add(close);
  let isClosing = false;
  const end = () => {
    if (isClosing) return;
    isClosing = true;
    void Promise.allSettled([...open].map((each) => each())).finally(() => process.exit(1));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeAllListeners(signal).on(signal, end);
}
