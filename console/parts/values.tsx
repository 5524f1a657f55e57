import { Fragment, useState } from 'react';
import { Link } from 'wouter';
import { zone } from '../api/zone.js';
import { useNow } from './now.js';

const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const NUMBER = new Intl.NumberFormat();

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A number as the reader's locale writes it. */
export const number = (value: number): string => NUMBER.format(value);

/** How long ago or ahead, in the largest unit that fits. @param seconds negative for the past */
function distance(seconds: number): string {
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? ['second' as const, 1];
  return RELATIVE.format(Math.round(seconds / size), unit);
}

/** A length of time, such as 2 min 5 s. @param seconds at least 0 */
export function duration(seconds: number): string {
  if (seconds < 60) return `${number(Math.round(seconds * 10) / 10)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${number(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/** An estimate, such as 12 to 20 min. */
export function estimate(minSeconds: number, maxSeconds: number): string {
  const [size, unit] = maxSeconds < 90 ? [1, 's'] : maxSeconds < 3 * 3_600 ? [60, 'min'] : [3_600, 'h'];
  const [from, to] = [minSeconds, maxSeconds].map((seconds) => number(Math.max(1, Math.round(seconds / size))));
  return from === to ? `${to} ${unit}` : `${from} to ${to} ${unit}`;
}

/** A moment: how long ago, or with `exact` the date and time; the other on hovering. */
export function Moment({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  if (!at) return null;
  if (!exact) return <Ago at={at} />;
  return <Exact at={at} />;
}

function Exact({ at }: { at: string }) {
  return (
    <time dateTime={at} title={relative(at, Date.now())}>
      {full(at, zone.use())}
    </time>
  );
}

function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={full(at, zone.use())}>
      {relative(at, useNow())}
    </time>
  );
}

const FULL = { dateStyle: 'medium', timeStyle: 'long' } as const;
const TIME = { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' } as const;

/** Formats by their zones: making one is slow. */
const formats = { full: new Map<string, Intl.DateTimeFormat>(), time: new Map<string, Intl.DateTimeFormat>() };

function format(kind: 'full' | 'time', at: string, timeZone: string): string {
  const known = formats[kind].get(timeZone);
  const made = known ?? new Intl.DateTimeFormat(undefined, { ...(kind === 'full' ? FULL : TIME), timeZone });
  formats[kind].set(timeZone, made);
  return made.format(new Date(at));
}

/** A date and time with its zone, such as 28 Nov 2026, 09:12:05 GMT+1. */
const full = (at: string, timeZone: string): string => format('full', at, timeZone);

/** A time of day with its zone. */
export function TimeOfDay({ at }: { at: string }) {
  return <time dateTime={at}>{format('time', at, zone.use())}</time>;
}

const relative = (at: string, now: number): string => distance((Date.parse(at) - now) / 1_000);

/** A link named by an id. A UUID is shown by its first eight characters, and whole on hovering and to screen readers. */
export function IdLink({ href, id }: { href: string; id: string }) {
  return (
    <Link href={href} title={id} aria-label={id}>
      {shortened(id)}
    </Link>
  );
}

const shortened = (id: string): string => (UUID.test(id) ? id.slice(0, 8) : id);

/** An id or a secret with a button that copies it. @param props.isShort shows the beginning of a UUID */
export function Copyable({ text, name, isShort = false }: { text: string; name: string; isShort?: boolean }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <span className="copyable">
      <code title={isShort ? text : undefined}>{isShort ? shortened(text) : text}</code>
      <button
        type="button"
        className="small"
        aria-label={`Copy ${name}`}
        onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
      >
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}

/** A name such as SESSION_CREATED, which may break after each of its words. */
export function Breakable({ name }: { name: string }) {
  return name.split(/(?<=_)/).map((word, at) => (
    <Fragment key={at}>
      {word}
      <wbr />
    </Fragment>
  ));
}
