import { applyDecorators } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Matches, ValidateIf } from 'class-validator';
import { fieldRule } from '../../http/request/fields.js';
import { isPlatformId, PLATFORM_ID_MAX } from './wire-types.js';

/** Validates a field of a request with `isPlatformId`. */
export const IsPlatformId = fieldRule(
  'isPlatformId',
  isPlatformId,
  `must be an id of at most ${PLATFORM_ID_MAX} characters`,
);

/** An id of the platform for the `action` link, which requires it. */
export const IsLinkTarget = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({ type: String, pattern: '^\\S+$' }),
    ValidateIf(({ action }: { action: unknown }, value: unknown) => action === 'link' || value !== undefined),
    Matches(/^\S+$/, { message: 'must be an id of the platform, without spaces' }),
    IsPlatformId(),
  );
