import { store } from './store.js';

/** The zone of this browser, such as Europe/Vienna. */
export const LOCAL_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The key under which this browser stores that its reader chose UTC. */
const CHOICE = 'notebridge.zone';
const UTC = 'UTC';

/** The zone in which times are shown and read. */
export const zone = store(localStorage.getItem(CHOICE) === UTC ? UTC : LOCAL_ZONE);

/** The zones that a reader can choose. */
export const ZONES = [LOCAL_ZONE, UTC] as const;

export function chooseZone(chosen: string): void {
  localStorage.setItem(CHOICE, chosen);
  zone.set(chosen);
}

/** The value of a `datetime-local` field, in the reader's zone, as RFC 3339; undefined if it is empty. */
export function momentOf(given: unknown): string | undefined {
  return given ? new Date(`${String(given)}${zone.get() === UTC ? 'Z' : ''}`).toISOString() : undefined;
}

/** A moment as the value of a `datetime-local` field, in the reader's zone; empty if the text is not a moment. */
export function fieldMoment(iso: string | undefined): string {
  const date = new Date(iso ?? '');
  if (Number.isNaN(date.getTime())) return '';
  const offsetMinutes = zone.get() === UTC ? 0 : date.getTimezoneOffset();
  return new Date(date.getTime() - offsetMinutes * 60_000).toISOString().slice(0, 16);
}
