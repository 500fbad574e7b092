"""The shop's pages: place an order, and see what became of its receipt."""

from django.db import transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from shop.models import Order
from shop.tasks import send_receipt


@csrf_exempt
@require_POST
@transaction.atomic
def place(request: HttpRequest) -> JsonResponse:
    """Store an order and the job of its receipt: both or neither."""
    order = Order.objects.create(email=request.POST["email"], cents=int(request.POST["cents"]))
    receipt = send_receipt.enqueue(order=order.pk)
    if order.cents <= 0:
        # The job is gone with the order.
        transaction.set_rollback(True)
        return JsonResponse({"error": "nothing to pay"}, status=400)
    return JsonResponse({"order": order.pk, "receipt": receipt.id}, status=201)


@require_GET
def receipt(request: HttpRequest, number: str) -> JsonResponse:
    """What became of a receipt."""
    del request
    try:
        result = send_receipt.get_result(number)
    except Exception as error:
        raise Http404(number) from error
    text = result.return_value if result.status == "SUCCESSFUL" else None
    return JsonResponse({"status": result.status, "receipt": text, "attempts": result.attempts})
