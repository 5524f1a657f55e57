/** Begins the correlation ids that this service makes; an appointment id of the EHR must not begin so. */
export const OWN_CORRELATION = 'notebridge:';

/**
 * What is sent as `partnerAppointmentId`: the EHR's own, else an id of ours, so that the platform's events can be told
 * to belong to a request whose answer was lost.
 *
 * @param session our id
 */
export function correlationId(session: string, partnerAppointmentId: string | undefined): string {
  return partnerAppointmentId ?? `${OWN_CORRELATION}${session}`;
}

/** The EHR's appointment id in what the platform gives back; one of ours is shown as absent. */
export function shownAppointment(partnerAppointmentId: string | null | undefined): string | null {
  return partnerAppointmentId?.startsWith(OWN_CORRELATION) ? null : (partnerAppointmentId ?? null);
}
