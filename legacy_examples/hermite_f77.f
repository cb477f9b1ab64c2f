C     hermite_f77.f - an N-body integrator of the GRAPE age, FORTRAN 77.
C
C     Fourth-order Hermite scheme with power-of-two block time steps
C     (Makino & Aarseth 1992, PASJ 44, 141); forces, nearest neighbours
C     and neighbour lists come from the GRAPE-6.
C
C        hermite_f77 [file [eps [eta [tend]]]]
C
C     file: one line a body, m x y z vx vy vz, G = 1; # is a comment.
C     Defaults: data/plummer1024.dat, eps = 4/N (also if negative),
C     eta = 0.02, tend = 1.  Energies are printed every quarter of a
C     time unit, from the host's own sum and the library's potential.
C
C     NMAX   most bodies          NPIPE  i particles per force call
C     LMAX   room for a neighbour list   NNB  neighbours in a density
C
      PROGRAM HERMIT
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, DTOUT=0.25D0)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BLOCKS/ LIST(NMAX), NB
C
      CALL INPUT
      CALL START
      CALL OUTPUT(EHOST0,EPOT0)
   10 CALL BLSTEP
      IF (DMOD(TIME,DTOUT).EQ.0.0D0 .OR. TIME.GE.TEND)
     &   CALL OUTPUT(EHOST,EPOT)
      IF (TIME.LT.TEND) GO TO 10
      CALL g6_close(0)
C
      ERRH = DABS((EHOST - EHOST0)/EHOST0)
      ERRP = DABS((EPOT - EPOT0)/EPOT0)
      WRITE (6,20) NSTEPS, NBLOCK, ERRP, ERRH
   20 FORMAT (' steps',I10,'   blocks',I9,/,
     &        ' relative energy error by pot',1PE12.3,/,
     &        ' relative energy error',1PE12.3)
      IF (.NOT.(ERRH.LT.1.0D30 .AND. ERRP.LT.1.0D30))
     &   CALL FATAL('energy is lost')
      END
C
C     ----------------------------------------------------------------
      SUBROUTINE FATAL(TEXT)
      CHARACTER*(*) TEXT
      L = LEN(TEXT)
   10 IF (L.GT.1 .AND. TEXT(L:L).EQ.' ') THEN
         L = L - 1
         GO TO 10
      END IF
      WRITE (0,20) TEXT(1:L)
   20 FORMAT (' hermite_f77: ',A)
      STOP 1
      END
C
C     ----------------------------------------------------------------
C     Reads the command line and the bodies.
      SUBROUTINE INPUT
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, BIG=1.0D30)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      CHARACTER*256 FILE, ARG
      CHARACTER*512 LINE
      REAL*8 B(7), P(3)
C
      FILE = 'data/plummer1024.dat'
      IF (IARGC().GE.1) CALL GETARG(1,FILE)
      P(1) = -1.0D0
      P(2) = 0.02D0
      P(3) = 1.0D0
      DO 10 K = 1,3
         IF (IARGC().GT.K) THEN
            CALL GETARG(K+1,ARG)
            READ (ARG,*,ERR=80,END=80) P(K)
         END IF
   10 CONTINUE
      IF (.NOT.(P(2).GT.0.0D0 .AND. P(3).GT.1.0D-9)) GO TO 80
C
      OPEN (10,FILE=FILE,STATUS='OLD',ERR=91)
      N = 0
   20 READ (10,'(A)',END=50,ERR=92) LINE
      K = INDEX(LINE,'#')
      IF (K.GT.0) LINE(K:) = ' '
      IF (LINE.EQ.' ') GO TO 20
      DO 30 K = 1,7
         B(K) = 2.0D0*BIG
   30 CONTINUE
      READ (LINE,*,ERR=92,END=92) B
      DO 35 K = 1,7
         IF (.NOT.DABS(B(K)).LT.BIG) GO TO 92
   35 CONTINUE
      IF (B(1).LT.0.0D0) GO TO 92
      IF (N.EQ.NMAX) GO TO 93
      N = N + 1
      BODY(N) = B(1)
      DO 40 K = 1,3
         X(K,N) = B(K+1)
         XDOT(K,N) = B(K+4)
   40 CONTINUE
      GO TO 20
   50 CLOSE (10)
      IF (N.EQ.0) GO TO 94
C
      EPS = P(1)
      IF (EPS.LT.0.0D0) EPS = 4.0D0/N
      EPS2 = EPS**2
      ETA = P(2)
      TEND = P(3)
C     The largest step divides TEND, so that all bodies meet there; if
C     need be, TEND moves to the nearest grid point.
      DTMAX = 0.125D0
   60 IF (DMOD(TEND,DTMAX).NE.0.0D0 .AND. DTMAX.GT.TEND/16.0D0) THEN
         DTMAX = 0.5D0*DTMAX
         GO TO 60
      END IF
      TEND = DTMAX*DNINT(TEND/DTMAX)
      WRITE (6,70) N, EPS, ETA, TEND
   70 FORMAT (' hermite_f77   N =',I6,'   eps =',1PE10.3,'   eta =',
     &        E10.3,'   t_end =',0PF10.5)
      RETURN
C
   80 CALL FATAL('usage: hermite_f77 [file [eps [eta [tend]]]]')
   91 CALL FATAL('cannot open '//FILE)
   92 WRITE (0,95) N + 1
   95 FORMAT (' hermite_f77: body',I7,' is not m x y z vx vy vz')
      CALL FATAL('broken snapshot '//FILE)
   93 CALL FATAL('more bodies than NMAX = 16384 in '//FILE)
   94 CALL FATAL('no bodies in '//FILE)
      END
C
C     ----------------------------------------------------------------
C     Writes body I into the memory of the GRAPE: a/2 and adot/6. The
C     second derivative goes as zero: sent, it predicts the j particles
C     better than the i particles, and the energy error doubles.
      SUBROUTINE SENDJ(I)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384)
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      REAL*8 A2(3), A1BY6(3), A2BY18(3)
      DATA A2BY18 /3*0.0D0/
      DO 10 K = 1,3
         A2(K) = 0.5D0*F(K,I)
         A1BY6(K) = FDOT(K,I)/6.0D0
   10 CONTINUE
      CALL g6_set_j_particle(0,I-1,I,T0(I),STEP(I),BODY(I),A2BY18,
     &                       A1BY6,A2,XDOT(1,I),X(1,I))
      END
C
C     ----------------------------------------------------------------
C     Opens the GRAPE and sends all bodies.
      SUBROUTINE GRINIT
      IMPLICIT REAL*8 (A-H,O-Z)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      INTEGER g6_open
      IF (g6_open(0).NE.0) CALL FATAL('cannot open the GRAPE')
      CALL g6_set_tunit(51)
      CALL g6_set_xunit(51)
      DO 10 I = 1,N
         CALL SENDJ(I)
   10 CONTINUE
      CALL g6_set_ti(0,TIME)
      END
C
C     ----------------------------------------------------------------
C     Number of bodies for one force call: what the GRAPE takes, and no
C     more than the arrays hold.
      INTEGER FUNCTION MPIPES()
      PARAMETER (NPIPE=48)
      INTEGER g6_npipes
      MPIPES = MIN(g6_npipes(),NPIPE)
      IF (MPIPES.LE.0) CALL FATAL('no GRAPE here')
      END
C
C     ----------------------------------------------------------------
C     Loads body I into pipe IP with the squared neighbour radius RS2.
      SUBROUTINE LOADI(IP,I,RS2)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, NPIPE=48)
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /PREDIC/ XP(3,NMAX), VP(3,NMAX), FN(3,NMAX), FDN(3,NMAX),
     &                PHI(NMAX), NEAR(NMAX)
      COMMON /PIPES/ XI(3,NPIPE), VI(3,NPIPE), FI(3,NPIPE),
     &               FDI(3,NPIPE), PHII(NPIPE), H2(NPIPE),
     &               INDEX(NPIPE), NNI(NPIPE)
      INDEX(IP) = I
      H2(IP) = RS2
      PHII(IP) = PHI(I)
      DO 10 K = 1,3
         XI(K,IP) = XP(K,I)
         VI(K,IP) = VP(K,I)
         FI(K,IP) = F(K,I)
         FDI(K,IP) = FDOT(K,I)
   10 CONTINUE
      END
C
C     ----------------------------------------------------------------
C     Forces on the NI bodies in the pipes.  After an error the GRAPE is
C     reset and everything is sent once more.
      SUBROUTINE GRCALC(NI)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NPIPE=48)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /PIPES/ XI(3,NPIPE), VI(3,NPIPE), FI(3,NPIPE),
     &               FDI(3,NPIPE), PHII(NPIPE), H2(NPIPE),
     &               INDEX(NPIPE), NNI(NPIPE)
      INTEGER g6calc_lasthalf2
      DO 20 ITRY = 1,5
         CALL g6calc_firsthalf(0,N,NI,INDEX,XI,VI,FI,FDI,PHII,EPS2,H2)
         IERR = g6calc_lasthalf2(0,N,NI,INDEX,XI,VI,EPS2,H2,
     &                           FI,FDI,PHII,NNI)
         IF (IERR.EQ.0) RETURN
         WRITE (0,10) IERR, TIME
   10    FORMAT (' hermite_f77: GRAPE error',I5,' at time',F12.6,
     &           ', reset')
         CALL g6_reset(0)
         CALL g6_reset_fofpga(0)
         CALL g6_close(0)
         CALL GRINIT
   20 CONTINUE
      CALL FATAL('the GRAPE gives no forces')
      END
C
C     ----------------------------------------------------------------
C     Predicts the bodies of the block to TIME and gets their forces.
      SUBROUTINE FORCES
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, NPIPE=48)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /PREDIC/ XP(3,NMAX), VP(3,NMAX), FN(3,NMAX), FDN(3,NMAX),
     &                PHI(NMAX), NEAR(NMAX)
      COMMON /PIPES/ XI(3,NPIPE), VI(3,NPIPE), FI(3,NPIPE),
     &               FDI(3,NPIPE), PHII(NPIPE), H2(NPIPE),
     &               INDEX(NPIPE), NNI(NPIPE)
      COMMON /BLOCKS/ LIST(NMAX), NB
      CALL g6_set_ti(0,TIME)
      DO 20 L = 1,NB
         I = LIST(L)
         S = TIME - T0(I)
         DO 10 K = 1,3
            XP(K,I) = ((FDOT(K,I)*S/6.0D0 + F(K,I)/2.0D0)*S
     &                + XDOT(K,I))*S + X(K,I)
            VP(K,I) = (FDOT(K,I)*S/2.0D0 + F(K,I))*S + XDOT(K,I)
   10    CONTINUE
   20 CONTINUE
      NP = MPIPES()
      DO 60 L0 = 1,NB,NP
         NI = MIN(NP,NB-L0+1)
         DO 30 IP = 1,NI
            CALL LOADI(IP,LIST(L0+IP-1),0.0D0)
   30    CONTINUE
         CALL GRCALC(NI)
         DO 50 IP = 1,NI
            I = INDEX(IP)
            PHI(I) = PHII(IP)
            NEAR(I) = NNI(IP)
            DO 40 K = 1,3
               FN(K,I) = FI(K,IP)
               FDN(K,I) = FDI(K,IP)
   40       CONTINUE
   50    CONTINUE
   60 CONTINUE
      END
C
C     ----------------------------------------------------------------
C     Hermite corrector for body I, and its next step by Aarseth's
C     criterion.  D2, D3: second and third derivative of the force.
      SUBROUTINE CORREC(I)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /PREDIC/ XP(3,NMAX), VP(3,NMAX), FN(3,NMAX), FDN(3,NMAX),
     &                PHI(NMAX), NEAR(NMAX)
      DT = TIME - T0(I)
      A = 0.0D0
      A1 = 0.0D0
      A2 = 0.0D0
      A3 = 0.0D0
      DO 10 K = 1,3
         DF = FN(K,I) - F(K,I)
         D2 = (6.0D0*DF - DT*(4.0D0*FDOT(K,I) + 2.0D0*FDN(K,I)))/DT**2
         D3 = (6.0D0*DT*(FDOT(K,I) + FDN(K,I)) - 12.0D0*DF)/DT**3
         X(K,I) = XP(K,I) + (D2/24.0D0 + DT*D3/120.0D0)*DT**4
         XDOT(K,I) = VP(K,I) + (D2/6.0D0 + DT*D3/24.0D0)*DT**3
         F(K,I) = FN(K,I)
         FDOT(K,I) = FDN(K,I)
         A = A + F(K,I)**2
         A1 = A1 + FDOT(K,I)**2
         A2 = A2 + (D2 + DT*D3)**2
         A3 = A3 + D3**2
   10 CONTINUE
      T0(I) = TIME
      DTNEW = DTMAX
      IF (A2.GT.0.0D0)
     &   DTNEW = DSQRT(ETA*(DSQRT(A*A2) + A1)/(DSQRT(A1*A3) + A2))
      IF (DTNEW.LT.DT) THEN
   20    STEP(I) = 0.5D0*STEP(I)
         IF (STEP(I).GT.DTNEW .AND. STEP(I).GT.1.0D-12) GO TO 20
      ELSE IF (DTNEW.GE.2.0D0*DT .AND. DT.LT.DTMAX) THEN
C        Twice the step, where the grid of that step allows it.
         IF (DMOD(TIME,2.0D0*DT).EQ.0.0D0) STEP(I) = 2.0D0*DT
      END IF
      END
C
C     ----------------------------------------------------------------
C     First forces and steps: a small part of |a| / |adot|.
      SUBROUTINE START
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, ETA0=0.0025D0)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /PREDIC/ XP(3,NMAX), VP(3,NMAX), FN(3,NMAX), FDN(3,NMAX),
     &                PHI(NMAX), NEAR(NMAX)
      COMMON /BLOCKS/ LIST(NMAX), NB
      COMMON /NBRAD/ RS(NMAX)
      TIME = 0.0D0
      NSTEPS = 0
      NBLOCK = 0
      SCALE = 0.0D0
      NB = N
      DO 20 I = 1,N
         LIST(I) = I
         T0(I) = 0.0D0
         STEP(I) = DTMAX
         DO 10 K = 1,3
            F(K,I) = 0.0D0
            FDOT(K,I) = 0.0D0
   10    CONTINUE
         SCALE = SCALE + DSQRT(X(1,I)**2 + X(2,I)**2 + X(3,I)**2)/N
   20 CONTINUE
      CALL GRINIT
      CALL FORCES
      DO 50 I = 1,N
         A = 0.0D0
         A1 = 0.0D0
         DO 30 K = 1,3
            F(K,I) = FN(K,I)
            FDOT(K,I) = FDN(K,I)
            A = A + F(K,I)**2
            A1 = A1 + FDOT(K,I)**2
   30    CONTINUE
   40    IF (STEP(I)*DSQRT(A1).GT.ETA0*DSQRT(A) .AND.
     &       STEP(I).GT.1.0D-12) THEN
            STEP(I) = 0.5D0*STEP(I)
            GO TO 40
         END IF
         CALL SENDJ(I)
         RS(I) = SCALE*(12.0D0/N)**(1.0D0/3.0D0)
         IF (RS(I).LE.0.0D0) RS(I) = 1.0D0
   50 CONTINUE
      END
C
C     ----------------------------------------------------------------
C     One block step: the bodies with the smallest T0 + STEP.
      SUBROUTINE BLSTEP
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /BLOCKS/ LIST(NMAX), NB
      TIME = T0(1) + STEP(1)
      DO 10 I = 2,N
         TIME = DMIN1(TIME,T0(I)+STEP(I))
   10 CONTINUE
      NB = 0
      DO 20 I = 1,N
         IF (T0(I)+STEP(I).EQ.TIME) THEN
            NB = NB + 1
            LIST(NB) = I
         END IF
   20 CONTINUE
      CALL FORCES
      DO 30 L = 1,NB
         CALL CORREC(LIST(L))
   30 CONTINUE
      DO 40 L = 1,NB
         CALL SENDJ(LIST(L))
   40 CONTINUE
      NSTEPS = NSTEPS + NB
      NBLOCK = NBLOCK + 1
      END
C
C     ----------------------------------------------------------------
C     Energies by the host and by the library's potential, the closest
C     pair, and the density centre.  All bodies are at TIME.
      SUBROUTINE OUTPUT(EHOST,EPOT)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, NNB=6)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /PREDIC/ XP(3,NMAX), VP(3,NMAX), FN(3,NMAX), FDN(3,NMAX),
     &                PHI(NMAX), NEAR(NMAX)
      COMMON /BLOCKS/ LIST(NMAX), NB
      NB = N
      DO 10 I = 1,N
         LIST(I) = I
   10 CONTINUE
      CALL FORCES
      EK = 0.0D0
      EP = 0.0D0
      EH = 0.0D0
      RMIN2 = 1.0D300
      IMIN = 1
      DO 30 I = 1,N
         EK = EK + 0.5D0*BODY(I)*
     &        (XDOT(1,I)**2 + XDOT(2,I)**2 + XDOT(3,I)**2)
         EP = EP + 0.5D0*BODY(I)*PHI(I)
         DO 20 J = 1,I-1
            EH = EH - BODY(I)*BODY(J)/DSQRT(DIST2(I,J) + EPS2)
   20    CONTINUE
         IF (NEAR(I).NE.I) THEN
            R2 = DIST2(I,NEAR(I))
            IF (R2.LT.RMIN2) THEN
               RMIN2 = R2
               IMIN = I
            END IF
         END IF
   30 CONTINUE
      EHOST = EK + EH
      EPOT = EK + EP
      WRITE (6,40) TIME, EHOST, EPOT
   40 FORMAT (' time',F11.5,'   energy (host)',1PE19.10,
     &        '   energy (pot)',E19.10)
      IF (N.GT.1) WRITE (6,50) IMIN, NEAR(IMIN), DSQRT(RMIN2)
   50 FORMAT (' closest pair',I8,I7,'   distance',1PE13.4)
      IF (N.GT.NNB) CALL DENSTY
      END
C
C     ----------------------------------------------------------------
      REAL*8 FUNCTION DIST2(I,J)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384)
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      DIST2 = (X(1,I) - X(1,J))**2 + (X(2,I) - X(2,J))**2
     &      + (X(3,I) - X(3,J))**2
      END
C
C     ----------------------------------------------------------------
C     Densities from the NNB nearest neighbours (Casertano & Hut 1985,
C     ApJ 298, 80).  The neighbour radius of a body is made smaller when
C     its list overflows, larger when the list is too short.
      SUBROUTINE DENSTY
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, NPIPE=48, NNB=6, LMAX=64, NROUND=100)
      COMMON /PARAMS/ TIME, TEND, EPS2, ETA, DTMAX, N, NSTEPS, NBLOCK
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      COMMON /PIPES/ XI(3,NPIPE), VI(3,NPIPE), FI(3,NPIPE),
     &               FDI(3,NPIPE), PHII(NPIPE), H2(NPIPE),
     &               INDEX(NPIPE), NNI(NPIPE)
      COMMON /NBRAD/ RS(NMAX)
      INTEGER NBL(LMAX), ITODO(NMAX)
      REAL*8 RHO(NMAX), XD(3)
      SAVE ITODO, RHO
      INTEGER g6_read_neighbour_list, g6_get_neighbour_list
C
      DO 10 I = 1,N
         ITODO(I) = I
         RHO(I) = 0.0D0
   10 CONTINUE
      NTODO = N
      NP = MPIPES()
      DO 60 IROUND = 1,NROUND
         IF (NTODO.EQ.0) GO TO 70
         NAGAIN = 0
         DO 50 L0 = 1,NTODO,NP
            NI = MIN(NP,NTODO-L0+1)
            DO 20 IP = 1,NI
               I = ITODO(L0+IP-1)
               CALL LOADI(IP,I,RS(I)**2 + EPS2)
   20       CONTINUE
            CALL GRCALC(NI)
            IFULL = g6_read_neighbour_list(0)
            IF (IFULL.LT.0) CALL FATAL('the GRAPE has no neighbours')
            DO 40 IP = 1,NI
               I = INDEX(IP)
               IOVER = IFULL
               IF (IFULL.EQ.0)
     &            IOVER = g6_get_neighbour_list(0,IP-1,LMAX,LEN,NBL)
               IF (IOVER.NE.0) THEN
                  RS(I) = 0.8D0*RS(I)
               ELSE
                  CALL NBDENS(I,LEN,NBL,NFOUND,RHO(I))
                  IF (NFOUND.GE.NNB) GO TO 40
                  RS(I) = RS(I)*MIN(2.0D0,
     &               (2.0D0*NNB/MAX(NFOUND,1))**(1.0D0/3.0D0))
               END IF
               NAGAIN = NAGAIN + 1
               ITODO(NAGAIN) = I
   40       CONTINUE
   50    CONTINUE
         NTODO = NAGAIN
   60 CONTINUE
C
   70 SUM = 0.0D0
      RC = 0.0D0
      DO 80 K = 1,3
         XD(K) = 0.0D0
   80 CONTINUE
      DO 100 I = 1,N
         SUM = SUM + RHO(I)
         DO 90 K = 1,3
            XD(K) = XD(K) + RHO(I)*X(K,I)
   90    CONTINUE
  100 CONTINUE
      DO 110 K = 1,3
         XD(K) = XD(K)/SUM
  110 CONTINUE
      DO 120 I = 1,N
         RC = RC + RHO(I)*DSQRT((X(1,I) - XD(1))**2
     &             + (X(2,I) - XD(2))**2 + (X(3,I) - XD(3))**2)
  120 CONTINUE
      WRITE (6,130) XD, RC/SUM
  130 FORMAT (' density centre',F11.5,2F10.5,'   density radius',F11.5)
      IF (NTODO.GT.0) WRITE (6,140) NTODO
  140 FORMAT (' no density found for',I6,' bodies')
      END
C
C     ----------------------------------------------------------------
C     Density at body I from the LEN neighbours in NBL: the mass of the
C     NNB-1 nearest over the cube of the distance of the NNB-th.  NFOUND
C     is the number of neighbours; some boards list the body itself.
      SUBROUTINE NBDENS(I,LEN,NBL,NFOUND,RHO)
      IMPLICIT REAL*8 (A-H,O-Z)
      PARAMETER (NMAX=16384, NNB=6, LMAX=64)
      COMMON /BODIES/ BODY(NMAX), X(3,NMAX), XDOT(3,NMAX), F(3,NMAX),
     &                FDOT(3,NMAX), T0(NMAX), STEP(NMAX)
      INTEGER NBL(LMAX), JSORT(LMAX)
      REAL*8 D2(LMAX)
      NFOUND = 0
      DO 30 L = 1,LEN
         J = NBL(L)
         IF (J.EQ.I) GO TO 30
         R2 = DIST2(I,J)
         DO 10 K = NFOUND,1,-1
            IF (D2(K).LE.R2) GO TO 20
            D2(K+1) = D2(K)
            JSORT(K+1) = JSORT(K)
   10    CONTINUE
         K = 0
   20    D2(K+1) = R2
         JSORT(K+1) = J
         NFOUND = NFOUND + 1
   30 CONTINUE
      IF (NFOUND.LT.NNB) RETURN
      RHO = 0.0D0
      DO 40 K = 1,NNB-1
         RHO = RHO + BODY(JSORT(K))
   40 CONTINUE
      RHO = RHO/DSQRT(D2(NNB))**3
      END
