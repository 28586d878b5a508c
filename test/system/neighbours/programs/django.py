import sys
from django.conf import settings
settings.configure(
    ALLOWED_HOSTS=['127.0.0.1'], SECRET_KEY='of the test', ROOT_URLCONF=__name__, USE_X_FORWARDED_HOST=False,
    SESSION_ENGINE='django.contrib.sessions.backends.signed_cookies',
    MIDDLEWARE=['django.middleware.security.SecurityMiddleware',
        'django.contrib.sessions.middleware.SessionMiddleware', 'django.middleware.http.ConditionalGetMiddleware',
        'django.middleware.common.CommonMiddleware', 'django.middleware.csrf.CsrfViewMiddleware'])
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.urls import path

def page(request, rest=''):
    return JsonResponse({'path': request.path, 'full': request.get_full_path()}, headers={'X-Address': request.build_absolute_uri()})

def form(request):
    if request.method == 'POST':
        request.session['visits'] = request.session.get('visits', 0) + 1
        return redirect('/done/')
    return HttpResponse(get_token(request))

def done(request):
    return HttpResponse('visits: %s' % request.session.get('visits'))

def stream(request):
    return StreamingHttpResponse('line %d\n' % i for i in range(1000))

urlpatterns = [path('items/', page), path('files/<path:rest>', page), path('form/', form), path('done/', done),
    path('stream/', stream)]

if __name__ == '__main__':
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
