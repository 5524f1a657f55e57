// Loaded before a program (node --require) to set its wall clock wrong by CLOCK_SKEW_MS, as on a host without NTP.
// The monotonic clock and timers are unchanged.

const skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0);
const RealDate = Date;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [RealDate.now() + skewMs] : given, newTarget),
  apply: () => new Date().toString(),
  get: (target, name) => (name === 'now' ? () => target.now() + skewMs : Reflect.get(target, name)),
});
