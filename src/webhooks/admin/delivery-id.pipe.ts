import { Injectable, type PipeTransform } from '@nestjs/common';
import { unknownDelivery } from './deliveries.service.js';

/** An id of the inbox; what can't be one is not found. */
@Injectable()
export class DeliveryIdPipe implements PipeTransform<string, string> {
  transform(value: string): string {
    if (!/^\d{1,18}$/.test(value)) throw unknownDelivery();
    return value;
  }
}
