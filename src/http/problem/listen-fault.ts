const BY_CODE: Record<string, (address: string) => string> = {
  EADDRINUSE: (address) =>
    `The address ${address} is taken (EADDRINUSE): stop what listens there, or set PORT to a free port; each process on one host needs its own.`,
  EACCES: (address) =>
    `This user may not listen on ${address} (EACCES): set PORT to 1024 or above, or allow it to this user.`,
  EADDRNOTAVAIL: (address) =>
    `This machine has no address ${address} (EADDRNOTAVAIL): set HOST to one of its own, or to 0.0.0.0 for all.`,
  ENOTFOUND: (address) => `The host of ${address} can not be resolved (ENOTFOUND): correct HOST.`,
  EAI_AGAIN: (address) =>
    `The host of ${address} can not be resolved now (EAI_AGAIN): set HOST to an address, or look at the name server.`,
};

/** Says in one sentence why the server can't listen, and which setting to mend; undefined of any other error. */
export function listenFault(error: unknown, { host, port }: { host: string; port: number }): string | undefined {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (syscall !== 'listen' && syscall !== 'getaddrinfo') return undefined;
  return BY_CODE[code ?? '']?.(host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);
}
