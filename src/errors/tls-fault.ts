/** Codes of OpenSSL and Node for a certificate that is not trusted (`man verify`, Node's `tls` module). */
const UNTRUSTED =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_(?!HAS_EXPIRED|NOT_YET_VALID)\w+|INVALID_(CA|PURPOSE))$/;
const OUT_OF_TIME = /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/;
const OTHER_HOST = /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/;
const NO_TLS = /^(EPROTO|ERR_SSL_\w+)$/;

/** node-postgres raises this without a code. */
const NO_TLS_MESSAGE = 'The server does not support SSL connections';

/** Explains why a TLS connection failed, and what to do; undefined if the error has another cause. */
export function tlsFault(error: unknown, { setting, authority }: { setting: string; authority: string }) {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (UNTRUSTED.test(code)) return `no trusted authority signed its certificate (${code}): name its own ${authority}.`;
  if (OUT_OF_TIME.test(code)) return `its certificate is not valid at this time (${code}): renew it, or set the clock.`;
  if (OTHER_HOST.test(code)) return `its certificate is for another host (${code}): correct the host in ${setting}.`;
  if (NO_TLS.test(code) || error.message === NO_TLS_MESSAGE)
    return `it does not speak TLS (${code || 'refused'}): enable TLS there, or correct the port in ${setting}.`;
  return undefined;
}

/** True if a TLS connection failed because of the other side or its certificate. */
export const isTlsFault = (error: unknown): boolean => tlsFault(error, { setting: '', authority: '' }) !== undefined;
