import { IsBoolean, IsOptional, Matches, ValidateBy, ValidateIf } from 'class-validator';
import { END_USER_VALUE } from '../access/identity/end-user.js';

/** The state of sending to the platform. */
export class SendingResponse {
  /** True while only reading calls go to the platform; everything is still received and read */
  held!: boolean;
  /** True while `HOLD_SENDING` also holds, so no release is accepted */
  heldBySetting!: boolean;
  /** Null if nothing is held */
  since!: Date | null;
  /** The id of the key or person that holds; `setting` for `HOLD_SENDING` */
  by!: string | null;
  reason!: string | null;
}

export class SendingRequest {
  @IsBoolean()
  held!: boolean;

  /**
   * Why, as the id of a case or a ticket, or a code: no text and no name, because the audit log keeps it. Required to hold
   *
   * @example RESTORE-2026-17
   */
  @ValidateIf(({ held, reason }: SendingRequest) => held || reason !== undefined)
  @Matches(END_USER_VALUE, {
    message: 'must be an id or a code, no name: 1 to 128 letters, digits and . _ : / | -',
  })
  reason?: string;

  /**
   * True if the database was restored, only for a release. It then raises the epoch of the feed, cancels unfinished
   * imports, and lets an operator decide about clients that no lookup can find
   */
  @IsOptional()
  @IsBoolean()
  @ValidateBy({
    name: 'onlyForRelease',
    validator: {
      validate: (restored, use) => restored !== true || (use?.object as SendingRequest | undefined)?.held === false,
      defaultMessage: () => 'is only for a release: held must be false',
    },
  })
  restored?: boolean;
}
