import { Param, type PipeTransform } from '@nestjs/common';
import { Problem } from '../../http/problem/problem.js';
import { EXTERNAL_ID_MAX, isExternalId } from '../model/person-rules.js';

class ExternalIdPipe implements PipeTransform<unknown, string> {
  transform(value: unknown): string {
    if (isExternalId(value)) return value;
    const detail = `The external id in the path must have 1 to ${EXTERNAL_ID_MAX} characters, without control characters or blanks at its ends.`;
    throw new Problem(400, 'bad-external-id', detail);
  }
}

/** The `{externalId}` of the path, checked. */
export const ExternalIdParam = (): ParameterDecorator => Param('externalId', new ExternalIdPipe());
